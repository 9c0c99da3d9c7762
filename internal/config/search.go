package config

import (
	"fmt"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/throttle"
)

// search is the section throttle.auto_concurrency. Mode enforce is refused: decision record 24.
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
	r.section = s.sub(s.declare("auto_concurrency", field.Taken, "Advises a better concurrency, for a service that reports its "+
		"work."), "{min: 4, max: 128}")
	oneOf(r.section, r.section.declare("mode", field.Taken, "shadow reports the concurrency that the search advises; off does not "+
		"search. enforce, which would use it, is refused."), &r.mode, choicesOf([]guard.Mode{guard.Enforce, guard.Shadow, guard.Off}))
	r.section.count(r.section.declare("min", field.Taken, "Lowest advice. Default: a quarter of concurrency, at "+
		"least 1."), &r.min, 1, mostConcurrency)
	r.section.count(r.section.declare("max", field.Taken, "Highest advice. Default: four times concurrency."), &r.max,
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
	if v, ok := s.given("mode"); ok && r.mode == guard.Enforce {
		s.fault(v, "may not be enforce: in one of five drawn simulations the search reached 0.84 of the work of a limit set by hand",
			"use shadow, and set concurrency to what headgate ctl throttle advises")
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
		s.fault(v, fmt.Sprintf("is above concurrency, %d", t.Concurrency), "lower it: the advice is around concurrency")
		return
	}
	if v, ok := s.given("max"); ok && most < t.Concurrency {
		s.fault(v, fmt.Sprintf("is below concurrency, %d", t.Concurrency), "raise it: the advice is around concurrency")
		return
	}
	t.Search = throttle.Search{Min: least, Max: most}
}
