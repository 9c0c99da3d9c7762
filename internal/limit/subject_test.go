package limit

import (
	"testing"

	"github.com/headgate/headgate"
)

// subject is one key under changing policies, with the state that a store keeps for it.
type subject struct {
	t    *testing.T
	plan *Plan
	// record is the policy of record of the cell.
	record  *Plan
	cell    Cell
	log     Log
	rings   []*Windows
	maxRing int
	// refunds changes the epoch of a log or a sliding window.
	refunds uint64
}

func newSubject(t *testing.T, policy headgate.Policy) *subject {
	t.Helper()
	p := mustCompile(t, policy)
	return &subject{t: t, plan: p, record: p}
}

func mustCompile(t *testing.T, policy headgate.Policy) *Plan {
	t.Helper()
	p, err := Compile(policy)
	if err != nil {
		t.Fatalf("Compile(%+v): %v", policy, err)
	}
	return p
}

// ring returns the plan's ring. A new ring is filled from the ring with the largest N.
func (s *subject) ring(now headgate.Instant) *Windows {
	var from *Windows
	for _, w := range s.rings {
		if s.plan.Rings(w) {
			return w
		}
		if from == nil || len(w.Counters) > len(from.Counters) {
			from = w
		}
	}
	w := &Windows{Counters: make([]int64, s.plan.WindowCounters())}
	if from != nil {
		s.plan.SeedWindows(w, from, now)
	}
	if s.rings = append(s.rings, w); len(s.rings) > MaxRings {
		s.rings = s.rings[1:]
	}
	return w
}

// do decides a request, and takes it if it passes or if refusals count.
func (s *subject) do(now headgate.Instant, cost int64, mode headgate.OpKind) headgate.Decision {
	if mode == headgate.Refund {
		return s.refund(now, cost)
	}
	if mode == headgate.Charge {
		return s.charge(now, cost)
	}
	var d headgate.Decision
	var draw Draw
	switch s.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		s.plan.JudgeLog(&s.log, now, cost, &d)
	case headgate.SlidingWindow:
		s.plan.JudgeWindows(s.ring(now), now, cost, &d)
	default:
		s.plan.JudgeOf(&s.cell, s.record, now, cost, mode, &draw)
		s.plan.Explain(&draw, &d)
	}
	counted := d.Verdict != headgate.Deny || s.plan.CountsRefused(d.Reason != headgate.Never)
	if mode == headgate.Peek || !counted {
		d.Receipt = headgate.Receipt{}
		return d
	}
	s.take(now, &d, &draw)
	if d.Verdict == headgate.Deny || !s.plan.Returnable() {
		d.Receipt = headgate.Receipt{}
	}
	return d
}

func (s *subject) take(now headgate.Instant, d *headgate.Decision, draw *Draw) {
	switch s.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		if !s.log.Room() {
			s.log.CopyTo(make([]int64, EntryWords*min(2*s.log.Len+2, max(s.plan.LogBound(), int(s.log.Most))+1)))
		}
		s.plan.TakeLog(&s.log, now, d)
		s.maxRing = max(s.maxRing, s.log.Len)
		d.Receipt.Place[1] = s.refunds<<16 | uint64(s.log.Moved)
	case headgate.SlidingWindow:
		for _, w := range s.rings {
			if s.plan.Rings(w) {
				s.plan.TakeWindows(w, now, d)
			} else {
				s.plan.CountWindows(w, d.At, d.Receipt.Cost)
			}
		}
		d.Receipt.Place[1] = s.refunds<<16 | uint64(s.moved())
	default:
		if s.plan.TakeOf(&s.cell, s.record, draw) {
			s.record = s.plan
		}
		s.plan.Receipt(draw, &d.Receipt)
		d.Receipt.Place[1] = uint64(draw.Epoch())
	}
}

// refund gives units back. A key without a ring has nothing to give back.
func (s *subject) refund(now headgate.Instant, cost int64) headgate.Decision {
	var d headgate.Decision
	given := false
	switch s.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		given = s.plan.RefundLog(&s.log, now, cost)
		s.plan.JudgeLog(&s.log, now, 0, &d)
	case headgate.SlidingWindow:
		for _, w := range s.rings {
			given = s.plan.RefundWindows(w, now, cost) || given
		}
		s.plan.JudgeWindows(s.ring(now), now, 0, &d)
	default:
		var draw Draw
		s.plan.RefundCell(&s.cell, s.record, now, cost, &Draw{})
		s.plan.JudgeOf(&s.cell, s.record, now, 0, headgate.Peek, &draw)
		s.plan.Explain(&draw, &d)
	}
	if given {
		s.refunds++
	}
	SettleRefund(&d, 0)
	return d
}

// charge counts units that are used already.
func (s *subject) charge(now headgate.Instant, cost int64) headgate.Decision {
	var units int64
	switch s.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		if !s.log.Room() {
			s.log.CopyTo(make([]int64, EntryWords*(2*s.log.Len+2)))
		}
		units = s.plan.ChargeLog(&s.log, now, cost)
	case headgate.SlidingWindow:
		var at headgate.Instant
		own := s.ring(now)
		units, at = s.plan.ChargeWindows(own, now, cost)
		for _, w := range s.rings {
			if w != own {
				s.plan.CountWindows(w, at, units)
			}
		}
	default:
		var recorded bool
		if units, recorded = s.plan.ChargeCell(&s.cell, s.record, now, cost, &Draw{}); recorded {
			s.record = s.plan
		}
	}
	d := s.do(now, 0, headgate.Peek)
	SettleRefund(&d, units)
	return d
}

// moved returns the number of long steps back of all rings.
func (s *subject) moved() uint16 {
	sum := uint16(0)
	for _, w := range s.rings {
		sum += w.Moved
	}
	return sum
}

func (s *subject) giveBack(r headgate.Receipt, now headgate.Instant) bool {
	switch s.plan.Policy.Algorithm {
	case headgate.SlidingLog:
		return r.Place[1] == s.refunds<<16|uint64(s.log.Moved) && s.plan.ReturnLog(&s.log, &r, now)
	case headgate.SlidingWindow:
		came := false
		for _, w := range s.rings {
			came = r.Place[1] == s.refunds<<16|uint64(s.moved()) && s.plan.ReturnWindows(w, &r) || came
		}
		return came
	default:
		return s.plan.Issued(&s.cell, uint16(r.Place[1]), &r) && s.record.ReturnCell(&s.cell, nil, &r, now)
	}
}

// change sets another policy. As in a store, a policy finds only the state of its family.
func (s *subject) change(policy headgate.Policy) {
	p := mustCompile(s.t, policy)
	if p.Family() != s.plan.Family() {
		epoch := s.cell.Epoch
		*s = subject{t: s.t, record: p, maxRing: s.maxRing}
		s.cell.Epoch = epoch + 1
	}
	s.plan = p
}
