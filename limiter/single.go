package limiter

import (
	"math"
	"runtime"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Single applies one limit to one resource. It is safe for concurrent use.
//
// A token bucket whose interval is a whole number of nanoseconds is stored in one word, and
// changes with one compare-and-swap. Other buckets, for example 7 per second, store the
// fraction of a nanosecond in a second word, and the first word is their lock.
type Single struct {
	plan      *limit.Plan
	wholeStep bool
	// word is the theoretical arrival time in whole nanoseconds, or locked.
	word atomic.Int64
	part uint64

	clock clock

	// state is nil for a bucket. Other algorithms need more than a word.
	state *state
}

// locked marks a word that its lock holder will store soon. No Instant is negative.
const locked = math.MinInt64

// NewSingle returns a Single. The error names the invalid field and valid values.
func NewSingle(l headgate.Limit, c Config) (*Single, error) {
	if l.Calendar != headgate.NoCalendar {
		return nil, errCalendar
	}
	plan, err := limit.Compile(c.policy(l))
	if err != nil {
		return nil, err
	}
	if c.Algorithm != headgate.TokenBucket && c.Algorithm != headgate.LeakyBucket {
		s, err := newState(plan, c.MaxMemory)
		if err != nil {
			return nil, err
		}
		return &Single{plan: plan, clock: newClock(c.Clock), state: s}, nil
	}
	return &Single{plan: plan, wholeStep: plan.Whole(), clock: newClock(c.Clock)}, nil
}

// Take counts n units if they pass, and writes the decision into d. It overwrites all
// fields of d, so a caller can reuse one Decision without a copy. The error is
// headgate.ErrBadCost, or headgate.ErrNotMade for a Single that NewSingle did not make.
// After an error the verdict is Deny. The decision has no Receipt.
func (s *Single) Take(n int64, d *headgate.Decision) error {
	if s == nil || !s.wholeStep || uint64(n) > headgate.MaxUnits || s.clock.given != nil {
		return s.decide(n, headgate.Take, d)
	}
	// The usual case of decideWhole, without calls that are not inlined.
	was := s.word.Load()
	now := s.clock.machine()
	next, passes := s.plan.Step(headgate.Instant(was), now, n)
	switch {
	case !passes:
		if s.plan.RefuseStep(headgate.Instant(was), now, next, n, d) {
			return nil
		}
	case s.word.CompareAndSwap(was, int64(next)):
		s.plan.PassStep(now, next, d)
		d.Receipt = headgate.Receipt{}
		return nil
	}
	return s.decide(n, headgate.Take, d)
}

// Peek writes into d the decision that Take would make, and counts nothing.
func (s *Single) Peek(n int64, d *headgate.Decision) error { return s.decide(n, headgate.Peek, d) }

func (s *Single) decide(n int64, mode headgate.OpKind, d *headgate.Decision) error {
	if s == nil || s.plan == nil {
		*d = headgate.Undecided()
		return headgate.ErrNotMade
	}
	if n < 0 || n > headgate.MaxUnits {
		*d = headgate.Undecided()
		return headgate.ErrBadCost
	}
	if s.state != nil {
		s.state.decide(s.plan, s.clock.now, n, mode, d)
		return nil
	}
	if s.wholeStep {
		s.decideWhole(n, mode, d)
	} else {
		s.decideLocked(n, mode, d)
	}
	return nil
}

// decideWhole changes the word with one swap. A refusal needs no swap.
func (s *Single) decideWhole(n int64, mode headgate.OpKind, d *headgate.Decision) {
	for {
		was := s.word.Load()
		// Read the time after the state: a successful swap proves that the state is unchanged.
		now := s.clock.now()
		next, passes := s.plan.Step(headgate.Instant(was), now, n)
		if !passes {
			if mode == headgate.Take && s.plan.RefuseStep(headgate.Instant(was), now, next, n, d) {
				return
			}
			var draw limit.Draw
			cell := limit.Cell{Time: headgate.Instant(was)}
			s.plan.JudgeCell(&cell, now, n, mode, &draw)
			s.plan.Explain(&draw, d)
			// After a step back of the clock, the bucket moves to the present.
			s.word.CompareAndSwap(was, int64(cell.Time))
			break
		}
		if mode == headgate.Peek || s.word.CompareAndSwap(was, int64(next)) {
			s.plan.PassStep(now, next, d)
			break
		}
	}
	d.Receipt = headgate.Receipt{}
}

// decideLocked decides while it holds the word as a lock.
func (s *Single) decideLocked(n int64, mode headgate.OpKind, d *headgate.Decision) {
	was := s.word.Load()
	for was == locked || !s.word.CompareAndSwap(was, locked) {
		runtime.Gosched()
		was = s.word.Load()
	}
	cell := limit.Cell{Time: headgate.Instant(was), Units: s.part}
	var draw limit.Draw
	s.plan.JudgeCell(&cell, s.clock.now(), n, mode, &draw)
	if draw.Verdict != headgate.Deny && mode != headgate.Peek {
		s.plan.TakeCell(&cell, &draw)
	}
	s.part = cell.Units
	s.word.Store(int64(cell.Time))
	s.plan.Explain(&draw, d)
	d.Receipt = headgate.Receipt{}
}
