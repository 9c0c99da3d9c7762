package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// trial is a change of the limit that has to prove itself, and how long the next one has to wait.
type trial struct {
	on     bool
	up     bool    // the direction of this trial, or of the next
	before float64 // the limit before
	rate   float64 // the work in time per second before
	rest   time.Duration
	next   headgate.Instant
}

// try begins a trial. With free CPU it goes up, and with idle cores by much.
func (s *searcher) try(now headgate.Instant, r reading) {
	t := &s.trial
	t.on, t.before, t.rate, t.up = true, s.limit, r.rate, t.up || r.sure || r.idle
	switch {
	case r.idle:
		s.move(now, s.limit*trialIdle)
	case t.up:
		s.move(now, s.limit*trialUp)
	default:
		s.move(now, s.limit*trialDown)
	}
}

// judge ends a trial. A failed one takes the limit back, and turns the next one round.
func (s *searcher) judge(now headgate.Instant, r reading) {
	t := &s.trial
	t.on = false
	if t.up && r.rate >= t.rate*gainUp || !t.up && r.rate >= t.rate*gainDown {
		t.rest = 0
		if t.up && r.idle {
			s.try(now, r)
		}
		return
	}
	s.move(now, t.before)
	t.up = !t.up
	t.rest = min(max(2*t.rest, shortestRest), longestRest)
	t.next = now.Add(t.rest)
	if r.idle {
		t.next = now.Add(t.rest / 4)
	}
}
