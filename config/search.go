package config

import (
	"fmt"

	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/throttle"
)

// search is the section throttle.auto_concurrency.
type search struct {
	section  *section
	mode     guard.Mode
	min, max int // 0 is the default
}

// The default bounds of the search are the concurrency divided and multiplied by searchSpan.
const searchSpan = 4

// readSearch reads the section. throttleSearch checks it when the concurrency is known.
func (s *section) readSearch() *search {
	r := &search{mode: guard.Shadow}
	r.section = s.sub(s.declare("auto_concurrency", field.Taken, "Searches a better concurrency, from concurrency on, for a service "+
		"that reports its work."), "{mode: enforce, min: 4, max: 128}")
	oneOf(r.section, r.section.declare("mode", field.Taken, "shadow only reports the concurrency that the search advises; enforce "+
		"uses it; off does not search."), &r.mode, choicesOf([]guard.Mode{guard.Enforce, guard.Shadow, guard.Off}))
	r.section.count(r.section.declare("min", field.Taken, "Lowest concurrency of the search. Default: a quarter of concurrency, at "+
		"least 1."), &r.min, 1, mostConcurrency)
	r.section.count(r.section.declare("max", field.Taken, "Highest concurrency of the search. Default: four times concurrency."), &r.max,
		1, mostConcurrency)
	r.section.outline.field("min").dependent()
	r.section.outline.field("max").dependent()
	r.section.end()
	return r
}

// throttleSearch gives the throttle its search, and reports bounds that do not include the concurrency.
func (r *search) throttleSearch(t *throttler.Config) {
	s := r.section
	if t.Concurrency == 0 {
		if s.begun() && t.CPUInFlight > 0 {
			s.fault(s.self, "searches a number of requests, but cpu_in_flight bounds CPU time", "remove it, or use concurrency")
		}
		return
	}
	if r.mode == guard.Enforce && t.ServiceTime {
		s.fault(s.self, "needs the reported work, but work: service_time ignores reports", "remove work, or use mode: shadow")
		return
	}
	if r.mode == guard.Off || s.blamedAny("min", "max") {
		return
	}
	least, most := max(t.Concurrency/searchSpan, 1), min(t.Concurrency*searchSpan, mostConcurrency)
	if r.min > 0 {
		least = r.min
	}
	if r.max > 0 {
		most = r.max
	}
	if v, ok := s.given("min"); ok && least > t.Concurrency {
		s.fault(v, fmt.Sprintf("is above concurrency, %d", t.Concurrency), "lower it: the search begins at concurrency")
		return
	}
	if v, ok := s.given("max"); ok && most < t.Concurrency {
		s.fault(v, fmt.Sprintf("is below concurrency, %d", t.Concurrency), "raise it: the search begins at concurrency")
		return
	}
	t.Search = throttle.Search{Min: least, Max: most, Apply: r.mode == guard.Enforce}
}
