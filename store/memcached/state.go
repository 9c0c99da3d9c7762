package memcached

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// state is the count of one window of a key under the policies of one family.
type state struct {
	window uint8
	// plan is that of the policy that took last.
	plan *limit.Plan
	// cell is the state. For a sliding window, only its epoch is used.
	cell limit.Cell
	// ended are earlier counts in windows of the calendar.
	ended limit.Ended
	// rings are the counters of a sliding window, one for each N, in the order in which they were
	// added.
	rings []limit.Windows
	// until is when the last receipt of this epoch becomes worthless. An emptied state is kept
	// until then: a new state would not know which receipts were returned.
	until headgate.Instant
}

// newState makes the state of a new key. Its epoch is random, so that receipts of an evicted state
// are void.
func newState(window uint8, p *limit.Plan) *state {
	return &state{window: window, plan: p, cell: limit.Cell{Epoch: uint16(rand.Uint32())}}
}

// sliding reports whether the plan's state is Windows instead of a Cell.
func sliding(p *limit.Plan) bool { return p.Policy.Algorithm == headgate.SlidingWindow }

// freeAt gives the instant at which the last counted unit expires.
func (s *state) freeAt() headgate.Instant {
	free := headgate.Instant(0)
	if !sliding(s.plan) {
		free = s.plan.CellFreeAt(&s.cell)
	}
	for _, n := range s.ended {
		if n.Units > 0 {
			free = max(free, limit.CountFreeAt(s.plan.Policy.Limit.Calendar, n.Time))
		}
	}
	for i := range s.rings {
		free = max(free, s.plan.WindowsFreeAt(&s.rings[i]))
	}
	return free
}

// ring gives the ring of the plan's N. A new ring starts with the counts of the ring with the
// largest N.
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

// settleMoves voids receipts after a long step back of the clock has moved counters.
func (s *state) settleMoves() {
	for i := range s.rings {
		s.cell.Epoch += s.rings[i].Moved
		s.rings[i].Moved = 0
	}
}

// clone gives a deep copy.
func (s *state) clone() *state {
	c := *s
	c.rings = slices.Clone(s.rings)
	for i := range c.rings {
		c.rings[i].Counters = slices.Clone(c.rings[i].Counters)
	}
	return &c
}

// before gives a copy for differs, made before a change.
func (s *state) before() state {
	was := *s
	was.rings = slices.Clone(s.rings)
	return was
}

// forget drops the counts, and voids all receipts.
func (s *state) forget() {
	s.cell.Void()
	s.ended = limit.Ended{}
	for i := range s.rings {
		clear(s.rings[i].Counters)
		s.rings[i].Total = 0
	}
}

// differs reports whether s must be written in place of was.
func (s *state) differs(was *state) bool {
	return s.plan != was.plan || s.cell != was.cell || s.ended != was.ended || s.until != was.until ||
		!slices.EqualFunc(s.rings, was.rings, func(a, b limit.Windows) bool {
			return len(a.Counters) == len(b.Counters) && a.Newest == b.Newest && a.Total == b.Total
		})
}

// dropAfter is how long an unused state is kept, because the clocks of callers may differ a little.
const dropAfter = together + 2*time.Second

// item has all states of one key, in the order of their windows. It is one value on a server.
type item struct {
	// last is the time of the latest written decision.
	last   headgate.Instant
	states []*state
	// changed: the item must be written.
	changed bool
}

// together bounds the assumed difference between callers' clocks. They are estimates of one
// server's clock, and exact to a second from the first sample on.
const together = 10 * time.Second

// time gives the time for a decision at now: not before an earlier decision. Otherwise a process
// with a slower clock would treat the counts as those before a step back of the clock, and drop
// some of them each time. A difference beyond together comes from a real step, and now is used.
func (it *item) time(now headgate.Instant) headgate.Instant {
	if it.last > now && it.last.Sub(now) <= together {
		return it.last
	}
	return now
}

// find gives the state of a window for policies of a family, or nil.
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

// order compares two states by window, then by family.
func order(a, b *state) int {
	x, y := a.plan.Family(), b.plan.Family()
	return cmp.Or(cmp.Compare(a.window, b.window), cmp.Compare(x.Algorithm, y.Algorithm), cmp.Compare(x.Per, y.Per),
		cmp.Compare(x.Calendar, y.Calendar))
}

// settled records a change of s. was is s before the change. A new and empty state is no change.
func (it *item) settled(s, was *state, now headgate.Instant) {
	if s.cell.Epoch != was.cell.Epoch {
		s.until = 0 // Receipts of an earlier epoch are already worthless.
	}
	s.until = max(s.until, s.freeAt())
	if was.plan == nil { // The state is new.
		it.changed = it.changed || s.until > now
		return
	}
	it.changed = it.changed || s.differs(was)
}

// until gives the instant at which the item can be dropped.
func (it *item) until() headgate.Instant {
	last := headgate.Instant(0)
	for _, s := range it.states {
		last = max(last, s.until)
	}
	return last
}

// drop removes states that are no longer needed.
func (it *item) drop(now headgate.Instant) {
	it.states = slices.DeleteFunc(it.states, func(s *state) bool { return s.until.Add(dropAfter) <= now || s.until == 0 })
}
