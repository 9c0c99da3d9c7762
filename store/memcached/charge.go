package memcached

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// charge decides a Charge, which is the only turn of its group.
func (p *part) charge(it *item, now headgate.Instant) {
	t, d := &p.turns[0], &p.decisions[0]
	t.at = it.time(now)
	t.begin(it)
	units := t.charge()
	if !t.plan.Blocks() {
		it.settled(t.state, &t.was, t.at)
	}
	it.last = t.at
	look := turn{plan: t.plan, at: t.at, draw: limit.Draw{Edges: t.draw.Edges}, state: t.state.clone()}
	look.judge(0, headgate.Peek, d)
	limit.SettleRefund(d, units)
	d.ResetAfter = microsUp(d.ResetAfter, t.at.Sub(now))
}

// charge counts up to the cost of the turn in its state, and returns the number of units.
func (t *turn) charge() (units int64) {
	s := t.state
	if !sliding(t.plan) {
		var recorded bool
		t.draw.Ended = s.ended
		if units, recorded = t.plan.ChargeCell(&s.cell, s.plan, t.at, t.cost, &t.draw); recorded {
			s.plan = t.plan
		}
		s.ended = t.draw.Ended
		return units
	}
	own := s.ring(t.plan, t.at)
	units, at := t.plan.ChargeWindows(own, t.at, t.cost)
	for i := range s.rings {
		if w := &s.rings[i]; w != own {
			t.plan.CountWindows(w, at, units)
		}
	}
	s.settleMoves()
	s.plan = t.plan
	return units
}
