package memory

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// charge decides a Charge, under the lock of its shard. A new key gets a place. Without one, no unit
// is counted.
func (s *Store) charge(t *turn, d *headgate.Decision) {
	if t.place == nil {
		if t.place = s.placeFor(t, nil); t.place == nil {
			s.storeFull(t, d)
			return
		}
	}
	s.begin(t)
	units, full := s.chargeUnits(t, d)
	s.end(t, nil)
	if full {
		return
	}
	alone, copied := *t, *t.place
	alone.place, alone.cost, alone.mode = &copied, 0, headgate.Peek
	s.judge(&alone, d)
	limit.SettleRefund(d, units)
}

// chargeWindows counts in every ring of the turn's key.
func (s *Store) chargeWindows(t *turn, d *headgate.Decision) (units int64, full bool) {
	own := s.ringOf(t.place, t.plan.Policy.SubWindows)
	if own == 0 {
		own = s.addRing(t)
	}
	if own == 0 {
		s.storeFull(t, d)
		return 0, true
	}
	w := s.openRing(t.place, own, t.plan.Policy.SubWindows)
	units, at := t.plan.ChargeWindows(&w, t.now, t.cost)
	s.closeRing(t.place, own, &w)
	for next, n := s.nextRing(t.place, 0); n > 0; next, n = s.nextRing(t.place, next) {
		if next != own {
			w := s.openRing(t.place, next, n)
			t.plan.CountWindows(&w, at, units)
			s.closeRing(t.place, next, &w)
		}
	}
	return units, false
}
