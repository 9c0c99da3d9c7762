package limit

import (
	"testing"

	"github.com/headgate/headgate"
)

// subject is one key under one plan, as a store would keep it.
type subject struct {
	t       *testing.T
	plan    *Plan
	cell    Cell
	log     Log
	windows Windows
	maxRing int
}

func newSubject(t *testing.T, policy headgate.Policy) *subject {
	t.Helper()
	s := &subject{t: t}
	s.plan = mustCompile(t, policy)
	s.windows.Counters = make([]int64, s.plan.WindowCounters())
	return s
}

func mustCompile(t *testing.T, policy headgate.Policy) *Plan {
	t.Helper()
	p, err := Compile(policy)
	if err != nil {
		t.Fatalf("Compile(%+v): %v", policy, err)
	}
	return p
}

// do decides and, if it passes or is counted all the same, takes.
func (s *subject) do(now headgate.Instant, cost int64, mode headgate.Mode) headgate.Decision {
	var d headgate.Decision
	var draw Draw
	switch s.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		s.plan.JudgeLog(&s.log, now, cost, &d)
	case headgate.SlidingWindow:
		s.plan.JudgeWindows(&s.windows, now, cost, &d)
	default:
		s.plan.JudgeCell(&s.cell, now, cost, mode, &draw)
		s.plan.Explain(&draw, &d)
	}
	counted := d.Verdict != headgate.Deny || s.plan.CountsRefused(d.Reason != headgate.Never)
	if mode == headgate.Peek || !counted {
		d.Receipt = headgate.Receipt{}
		return d
	}
	s.take(&d, &draw)
	if d.Verdict == headgate.Deny || !s.plan.Returnable() {
		d.Receipt = headgate.Receipt{}
	}
	return d
}

func (s *subject) take(d *headgate.Decision, draw *Draw) {
	switch s.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		if !s.log.Room() {
			s.log.CopyTo(make([]int64, EntryWords*min(2*s.log.Len+2, s.plan.LogBound()+1)))
		}
		s.plan.TakeLog(&s.log, d)
		s.maxRing = max(s.maxRing, s.log.Len)
	case headgate.SlidingWindow:
		s.plan.TakeWindows(&s.windows, d)
	default:
		s.plan.TakeCell(&s.cell, draw)
		s.plan.Receipt(draw, &d.Receipt)
		d.Receipt.Place[1] = uint64(draw.Epoch())
	}
}

func (s *subject) giveBack(r headgate.Receipt, now headgate.Instant) bool {
	switch s.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		return s.plan.ReturnLog(&s.log, &r, now)
	case headgate.SlidingWindow:
		return s.plan.ReturnWindows(&s.windows, &r)
	default:
		return r.Place[1] == uint64(s.cell.Epoch) && s.plan.ReturnCell(&s.cell, &r, now)
	}
}

// change puts the key under another limit of the same algorithm.
func (s *subject) change(policy headgate.Policy, now headgate.Instant) {
	old := s.plan
	s.plan = mustCompile(s.t, policy)
	switch policy.Algorithm {
	case headgate.SlidingLog:
	case headgate.SlidingWindow:
		from := s.windows
		s.windows.Counters = make([]int64, s.plan.WindowCounters())
		s.plan.CarryWindows(&s.windows, old, &from, now)
	default:
		s.plan.CarryCell(&s.cell, old, now)
	}
}
