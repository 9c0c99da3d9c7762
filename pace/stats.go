package pace

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// waitBounds are the upper bounds of the classes in which waits are counted.
var waitBounds = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second, time.Minute, 10 * time.Minute,
}

// WaitBounds gives the upper bounds, which belong to their classes, in which waits are counted.
func WaitBounds() []time.Duration { return slices.Clone(waitBounds[:]) }

// counts is what a pacer has done, but for the window that it is in.
type counts struct {
	acquired, waited                                     uint64
	timedOut, givenUp, tooMany, tooLarge, faults, brakes uint64
	demand                                               int64
	waits                                                [len(waitBounds) + 1]uint64
	waitSum                                              time.Duration
}

// served counts units that were given after a wait.
func (c *counts) served(wait time.Duration, n int64) {
	class := 0
	for class < len(waitBounds) && wait > waitBounds[class] {
		class++
	}
	c.waits[class]++
	c.waitSum += wait
	c.waited += uint64(n)
}

// Stats is what a pacer has done since it was made, and how it stands.
type Stats struct {
	Provider  string
	Limit     int64         // units a window, of all instances, by the plan that holds
	Per       time.Duration // a window's length
	Instances int
	Index     int
	Part      int64 // this instance's units of the present window
	Revision  int64 // of the plan

	Acquired uint64 // units given, those of Waited among them
	Waited   uint64 // units given after a wait
	TimedOut uint64 // who could not be served in time
	GivenUp  uint64 // who was cancelled while waiting
	TooMany  uint64 // who found too many waiting
	TooLarge uint64 // who asked for more than a window has
	Faults   uint64 // of the source
	Brakes   uint64 // that were begun

	Waiters     int
	Demand      int64     // units asked for in the last whole window
	BrakedTo    int       // percent of the limit that may go; 100 when there is no brake
	BrakedUntil time.Time // zero when there is no brake
	Lost        bool      // what was assigned is no longer valid
	ClockOffset time.Duration

	Waits   []uint64      // who waited, by WaitBounds, and one class beyond them
	WaitSum time.Duration // of all waits
}

// Stats tells how the pacer stands. It costs a microsecond.
func (p *Pacer) Stats() Stats {
	if !p.made() {
		return Stats{}
	}
	now := p.enter()
	w, c := &p.window, &p.counts
	s := Stats{
		Provider: p.config.Provider,
		Limit:    w.Plan.Limit, Per: w.Plan.Per, Instances: w.Plan.Instances, Index: w.Plan.Index, Part: w.part, Revision: w.Revision,
		Acquired: c.acquired + uint64(w.given), Waited: c.waited, TimedOut: c.timedOut, GivenUp: c.givenUp,
		TooMany: c.tooMany, TooLarge: c.tooLarge, Faults: c.faults, Brakes: c.brakes,
		Waiters: p.queue.waiters, Demand: c.demand, BrakedTo: p.brakes.percent(now), Lost: now >= p.valid,
		ClockOffset: p.clockOffset, Waits: slices.Clone(c.waits[:]), WaitSum: c.waitSum,
	}
	if until := p.brakes.until(now, 100); until > 0 {
		s.BrakedUntil = headgate.Instant(until + p.clock.ahead(now)).Time()
	}
	p.leave(now)
	return s
}
