package simulate

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/sim/service"
	"github.com/headgate/headgate/rule"
)

// Bounds of a Scenario.
const (
	mostKeys   = 1_000_000
	mostLength = 10 * 366 * 24 * time.Hour
)

// Scenario is traffic of a time, and optionally the service behind the guard.
type Scenario struct {
	Seed    uint64
	Length  time.Duration
	Groups  []Group
	Service *Service // nil: each request takes the Duration of its group
}

// keys returns the number of keys of all groups.
func (s *Scenario) keys() (n int64) {
	for i := range s.Groups {
		n += s.Groups[i].Keys
	}
	return n
}

// expects returns about how many requests the groups send, without retries.
func (s *Scenario) expects() (n float64) {
	for i := range s.Groups {
		g := &s.Groups[i]
		lasts := s.Length - g.From
		if g.Until > 0 {
			lasts = min(s.Length, g.Until) - g.From
		}
		n += float64(g.Clients) * float64(lasts) / g.Rate.interval()
	}
	return n
}

// Group is clients that do the same.
type Group struct {
	Name string
	// Clients send one traffic each, independent of one another.
	Clients int64
	// Keys is the number of their keys. Each client has one, or shares it if there are fewer keys than clients, or takes several in
	// turn. Zipf above 1 draws a key for each request: key k with a weight of (1+k)^-Zipf.
	Keys int64
	Zipf float64
	// Traffic is the kind of the traffic of a client, and Rate its mean.
	Traffic string
	Rate    Rate
	// Jitter adds up to half of Retry-After to the time at which a refused request comes back.
	Jitter bool
	// Cost is that of a request; 0 leaves it to the rules.
	Cost int64
	// Duration is the time that the service takes without a model.
	Duration time.Duration
	// From and Until are the times of the first and the last request; an Until of 0 is the end.
	From, Until time.Duration
	// Method, Host, Path, Query and Headers are those of the requests. Path is clean, and Query is as clients send it.
	Method, Host, Path string
	Query              rule.Query
	Headers            Headers
}

// Header is a header field. {key} in its value stands for the name of the key: that of the group, and a number.
type Header struct{ Name, Value string }

// Headers are the header fields of a request.
type Headers []Header

// Lookup implements headgate.Values.
func (h Headers) Lookup(name string) (value string, ok bool) {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			return h[i].Value, true
		}
	}
	return "", false
}

// Service is a model of a service, and the mean work of a request. The parts of a request's work are exponential.
type Service struct {
	service.Model

	CPU, Hold, Wait time.Duration
}

// draw returns the work of one request.
func (s *Service) draw(r *rand.Rand) service.Job {
	return service.Job{
		CPU:  r.ExpFloat64() * float64(s.CPU),
		Pool: r.ExpFloat64() * float64(s.Hold),
		Wait: r.ExpFloat64() * float64(s.Wait),
	}
}
