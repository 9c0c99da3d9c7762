package pace

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// waitBounds are the upper bounds of the histogram of waits.
var waitBounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second, time.Minute, 10 * time.Minute,
}

// WaitBounds returns the inclusive upper bounds of the histogram of waits.
func WaitBounds() []time.Duration { return slices.Clone(waitBounds[:]) }

// counts has a pacer's counters, without those of the current window.
type counts struct {
	acquired, waited                                     uint64
	timedOut, givenUp, tooMany, tooLarge, faults, brakes uint64
	demand                                               int64
	refused, left                                        int64 // units of refused requests, and of callers that left
	waits                                                [len(waitBounds) + 1]uint64
	waitSum                                              time.Duration
}

// served counts units that were granted after a wait.
func (c *counts) served(wait time.Duration, n int64) {
	class := 0
	for class < len(waitBounds) && wait > waitBounds[class] {
		class++
	}
	c.waits[class]++
	c.waitSum += wait
	c.waited += uint64(n)
}

// Stats has a pacer's counters since it was made, and its current state.
type Stats struct {
	Provider  string
	Limit     int64         // units per window for all instances, by the current plan; with a rate, those of this instance
	Per       time.Duration // a window's length
	Instances int
	Index     int
	Part      int64 // this instance's units in the current window
	Revision  int64 // of the plan

	Acquired uint64 // units granted, including Waited
	Waited   uint64 // units granted after a wait
	TimedOut uint64 // requests that timed out
	GivenUp  uint64 // requests cancelled while waiting
	TooMany  uint64 // requests refused with ErrTooManyWaiters
	TooLarge uint64 // requests refused with ErrTooLarge
	Faults   uint64 // faults of the source
	Brakes   uint64 // brakes that were begun

	Waiters     int
	Demand      int64     // units requested in the last complete window
	BrakedTo    int       // percent of the limit that is allowed; 100 without a brake
	BrakedUntil time.Time // zero without a brake
	Lost        bool      // the assigned plan has expired
	ClockOffset time.Duration

	Waits   []uint64      // waits by the classes of WaitBounds, and one class above them
	WaitSum time.Duration // sum of all waits
}

// Stats returns the counters and the state of the pacer. A call costs a microsecond.
func (p *Pacer) Stats() Stats {
	if !p.made() {
		return Stats{}
	}
	now := p.enter()
	w, c := &p.window, &p.counts
	s := Stats{
		Provider: p.config.Provider,
		Limit:    w.Plan.Limit, Per: w.Plan.Per, Instances: w.Plan.Instances, Index: w.Plan.Index, Part: w.part, Revision: w.Revision,
		Acquired: c.acquired + uint64(w.earlier+w.given), Waited: c.waited, TimedOut: c.timedOut, GivenUp: c.givenUp,
		TooMany: c.tooMany, TooLarge: c.tooLarge, Faults: c.faults, Brakes: c.brakes,
		Waiters: p.queue.waiters, Demand: c.demand, BrakedTo: p.brakes.percent(now), Lost: now >= p.valid,
		ClockOffset: p.clockOffset, Waits: slices.Clone(c.waits[:]), WaitSum: c.waitSum,
	}
	if p.rate.on {
		s.Part = s.Limit
	}
	if until := p.brakes.until(now, 100); until > 0 {
		s.BrakedUntil = headgate.Instant(until + p.clock.ahead(now)).Time()
	}
	p.leave(now)
	return s
}
