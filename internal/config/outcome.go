package config

import (
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
)

const (
	// maxStatuses bounds the statuses of count: each request compares its own with all of them.
	maxStatuses = 100
	// leastTTL leaves a third of a second for each renewal of a slot.
	leastTTL = time.Second
	mostTTL  = time.Hour

	// mostInFlight bounds the slots of a key. A set in Redis takes about 100 bytes for each taken slot.
	mostInFlight = 1_000_000

	trailerPrefix = "trailer:"
)

// outcome reads the settings of a rule that depend on the end of requests.
func (s *section) outcome(r *guard.Rule) {
	c := s.sub(s.declare("count", field.Taken, "Requests that stay counted, by the status of their answer. The others get their units "+
		"back at their end."), "{status: [401, 403]}")
	if c.self.node != nil {
		c.required("status", "write which statuses count, like status: [401, 403]")
	}
	entries, _ := c.scalars(c.declare("status", field.Taken, "HTTP statuses, 200 to 599. The code of a gRPC call counts as its HTTP "+
		"status."), "[401, 403]", maxStatuses)
	for _, v := range entries {
		var status int64
		if c.wholeNumber(v, &status, 200, 599) {
			r.Count = append(r.Count, int(status))
		}
	}
	c.end()
	s.settle(r)
	s.number(s.declare("in_flight", field.Taken, "Requests that a key may have in flight at once, on all instances together. Default: "+
		"no bound."), &r.InFlight, 1, mostInFlight)
	ttl := guard.DefaultInFlightTTL
	s.duration(s.declare("in_flight_ttl", field.Taken, "Time after which Redis frees what a crashed instance had in flight."),
		&ttl, leastTTL, mostTTL)
	if where, ok := s.given("in_flight_ttl"); ok && r.InFlight == 0 && !s.blamed(s.pathOf("in_flight")) {
		s.fault(where, "is only valid with in_flight", "remove it, or write in_flight: 20")
	}
	if r.InFlight > 0 {
		r.InFlightTTL = ttl
	}
}

// checkOutcomes checks these settings against the store.
func (r *reader) checkOutcomes(c *Config) {
	memcached := c.Shared != nil && c.Shared.Kind == KindMemcached
	r.noteAll(check.Outcomes(c.Rules, memcached, r.blamed))
}
