package memcached

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// state is what one window of a key has counted under the policies of one family.
type state struct {
	window uint8
	// plan is the policy of record: the one that took last.
	plan *limit.Plan
	// cell is the state, or, of a sliding window, the epoch alone.
	cell limit.Cell
	// rings are the counters of a sliding window, one for each N, in the order in which
	// they were added.
	rings []limit.Windows
	// until is when the last receipt of this epoch is worthless. A state that returns
	// have emptied is kept until then: a new one would not know what was returned.
	until headgate.Instant
}

// newState makes the state of what was never seen. Its epoch is random: what an evicted
// one has given receipts for is not returned to it.
func newState(window uint8, p *limit.Plan) *state {
	return &state{window: window, plan: p, cell: limit.Cell{Epoch: uint16(rand.Uint32())}}
}

// sliding reports whether the plan's state is Windows, not a Cell.
func sliding(p *limit.Plan) bool { return p.Policy.Algorithm == headgate.SlidingWindow }

// freeAt gives the instant from which the state holds nothing that counts.
func (s *state) freeAt() headgate.Instant {
	if !sliding(s.plan) {
		return s.plan.CellFreeAt(&s.cell)
	}
	free := headgate.Instant(0)
	for i := range s.rings {
		free = max(free, s.plan.WindowsFreeAt(&s.rings[i]))
	}
	return free
}

// ring gives the ring of the plan's N. One that is not there begins from that of the
// greatest N.
func (s *state) ring(p *limit.Plan, now headgate.Instant) *limit.Windows {
	finest := 0
	for i := range s.rings {
		if p.Rings(&s.rings[i]) {
			return &s.rings[i]
		}
		if len(s.rings[i].Counters) > len(s.rings[finest].Counters) {
			finest = i
		}
	}
	w := limit.Windows{Counters: make([]int64, p.WindowCounters())}
	if len(s.rings) > 0 {
		p.SeedWindows(&w, &s.rings[finest], now)
	}
	s.rings = append(s.rings, w)
	if len(s.rings) > limit.MaxRings {
		s.rings = slices.Delete(s.rings, 0, 1)
	}
	s.settleMoves()
	return &s.rings[len(s.rings)-1]
}

// settleMoves voids receipts when a long step back of the clock has moved counters.
func (s *state) settleMoves() {
	for i := range s.rings {
		s.cell.Epoch += s.rings[i].Moved
		s.rings[i].Moved = 0
	}
}

// clone gives a copy that shares nothing.
func (s *state) clone() *state {
	c := *s
	c.rings = slices.Clone(s.rings)
	for i := range c.rings {
		c.rings[i].Counters = slices.Clone(c.rings[i].Counters)
	}
	return &c
}

// before gives what differs needs to know of the state before it changes.
func (s *state) before() state {
	was := *s
	was.rings = slices.Clone(s.rings)
	return was
}

// forget drops what is counted, and voids all receipts.
func (s *state) forget() {
	s.cell = limit.Cell{Epoch: s.cell.Epoch + 1}
	for i := range s.rings {
		clear(s.rings[i].Counters)
		s.rings[i].Total = 0
	}
}

// differs reports whether s is to be written in the place of was.
func (s *state) differs(was *state) bool {
	return s.plan != was.plan || s.cell != was.cell || s.until != was.until ||
		!slices.EqualFunc(s.rings, was.rings, func(a, b limit.Windows) bool {
			return len(a.Counters) == len(b.Counters) && a.Newest == b.Newest && a.Total == b.Total
		})
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

// find gives the state of a window that policies of a family count in, or nil.
func (it *item) find(window uint8, family limit.Family) *state {
	for _, s := range it.states {
		if s.window == window && s.plan.Family() == family {
			return s
		}
	}
	return nil
}

// add adds the state of a window.
func (it *item) add(s *state) {
	i := 0
	for i < len(it.states) && order(it.states[i], s) < 0 {
		i++
	}
	it.states = slices.Insert(it.states, i, s)
}

// order compares the places of two states in their item: by window, then by family.
func order(a, b *state) int {
	x, y := a.plan.Family(), b.plan.Family()
	return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(x.Algorithm, y.Algorithm), cmp.Compare(x.Per, y.Per))
}

// settled takes note of what was done to s, which was was. A state that was not
// there before is no change as long as it holds nothing.
func (it *item) settled(s, was *state, now headgate.Instant) {
	if s.cell.Epoch != was.cell.Epoch {
		s.until = 0 // Receipts of an earlier epoch are worthless already.
	}
	s.until = max(s.until, s.freeAt())
	if was.plan == nil { // It is new.
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
