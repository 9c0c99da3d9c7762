package memcached

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// state is what one window of a key has counted.
type state struct {
	window uint8
	// plan is the policy that it was last counted under; nil is a state without one.
	plan *limit.Plan
	// cell is the state, or, of a sliding window, the epoch alone.
	cell    limit.Cell
	windows limit.Windows
	// until is when the last receipt of this epoch is worthless. A state that returns
	// have emptied is kept until then: a new one would not know what was returned.
	until headgate.Instant
}

// sliding reports whether the plan's state is Windows, not a Cell.
func sliding(p *limit.Plan) bool { return p.Policy.Algorithm == headgate.SlidingWindow }

// freeAt gives the instant from which the state holds nothing that counts.
func (s *state) freeAt() headgate.Instant {
	if sliding(s.plan) {
		return s.plan.WindowsFreeAt(&s.windows)
	}
	return s.plan.CellFreeAt(&s.cell)
}

// under restates what was counted for the plan p. A state that was never seen gets
// a random epoch: what an evicted one has given receipts for is not returned to it.
func (s *state) under(p *limit.Plan, now headgate.Instant) {
	old := s.plan
	s.plan = p
	switch {
	case old == nil:
		s.cell = limit.Cell{Epoch: uint16(rand.Uint32())}
		s.fresh()
	case old.Policy.Algorithm != p.Policy.Algorithm:
		s.cell = limit.Cell{Epoch: s.cell.Epoch + 1}
		s.fresh()
	case sliding(p):
		from := s.windows
		s.fresh()
		p.CarryWindows(&s.windows, old, &from, now)
		s.cell.Epoch++
	default:
		p.CarryCell(&s.cell, old, now)
	}
}

// fresh gives the state the counters of its plan, if that has any.
func (s *state) fresh() {
	s.windows = limit.Windows{}
	if sliding(s.plan) {
		s.windows.Counters = make([]int64, s.plan.WindowCounters())
	}
}

// clone gives a copy that shares nothing.
func (s *state) clone() *state {
	c := *s
	c.windows.Counters = slices.Clone(s.windows.Counters)
	return &c
}

// forget drops what is counted, and voids all receipts.
func (s *state) forget() {
	s.cell = limit.Cell{Epoch: s.cell.Epoch + 1}
	clear(s.windows.Counters)
	s.windows.Total = 0
}

// differs reports whether s is to be written in the place of was.
func (s *state) differs(was *state) bool {
	return s.plan != was.plan || s.cell != was.cell || s.until != was.until ||
		s.windows.Newest != was.windows.Newest || s.windows.Total != was.windows.Total
}

// dropAfter is how long a state is kept that nothing stands on: clocks of callers
// may lie a little apart.
const dropAfter = together + 2*time.Second

// item is all states of one key, in the order of their windows: what one value on a
// server holds.
type item struct {
	// last is the time of the latest decision that was written.
	last   headgate.Instant
	states []*state
	// changed says that the item is to be written.
	changed bool
}

// together is how far apart callers' clocks are taken to lie at the most. They are
// estimates of one server's clock, and known to a second from the first sample on.
const together = 10 * time.Second

// time gives the time at which to decide on the item at now: not before that of an
// earlier decision. Else a process whose clock is a little behind would take what it
// finds for the leavings of a clock that has stepped back, and forget some of it, at
// each turn. What lies further ahead than clocks do is of such a step: it is passed over.
func (it *item) time(now headgate.Instant) headgate.Instant {
	if it.last > now && it.last.Sub(now) <= together {
		return it.last
	}
	return now
}

// find gives the state of a window, or nil.
func (it *item) find(window uint8) *state {
	for _, s := range it.states {
		if s.window == window {
			return s
		}
	}
	return nil
}

// add gives a new state for a window that has none.
func (it *item) add(window uint8) *state {
	s := &state{window: window}
	i := 0
	for i < len(it.states) && it.states[i].window < window {
		i++
	}
	it.states = slices.Insert(it.states, i, s)
	return s
}

// settled takes note of what was done to s, which was was. A state that was not
// there before is no change as long as it holds nothing.
func (it *item) settled(s, was *state, now headgate.Instant) {
	if s.cell.Epoch != was.cell.Epoch {
		s.until = 0 // Receipts of an earlier epoch are worthless already.
	}
	s.until = max(s.until, s.freeAt())
	if was.plan == nil {
		it.changed = it.changed || s.until > now
		return
	}
	it.changed = it.changed || s.differs(was)
}

// until gives the instant up to which the item matters.
func (it *item) until() headgate.Instant {
	last := headgate.Instant(0)
	for _, s := range it.states {
		last = max(last, s.until)
	}
	return last
}

// drop leaves out what nothing stands on any more.
func (it *item) drop(now headgate.Instant) {
	it.states = slices.DeleteFunc(it.states, func(s *state) bool { return s.until.Add(dropAfter) <= now || s.until == 0 })
}
