package prefetch

import (
	"time"

	"github.com/headgate/headgate"
)

// refillOne requests the next stash of a key with one op.
func (s *Store) refillOne(op headgate.Op, policy *policy) {
	p := keyOps{tag: s.hash(op.Key), cost: op.Cost}
	p.add(&op, policy)
	s.refill([]headgate.Op{op}, &p)
}

// refill requests the next stash of a key when its place says so.
func (s *Store) refill(ops []headgate.Op, p *keyOps) {
	now := s.now()
	t := s.table.setOf(p.tag)
	t.lock()
	n, forgot := int64(0), t.forgot
	p.lifted = t.lifted
	if pl := t.find(p.tag, &p.shape); pl != nil {
		n = s.ahead(pl, p, now, true)
	}
	t.unlock()
	fl := &s.flights
	fl.mu.Lock()
	defer fl.mu.Unlock()
	sl := fl.slotOf(p)
	if n < 1 || sl.flight != nil || fl.full() {
		fl.sweep(p)
		s.endFlight(p, now)
		return
	}
	f := &flight{}
	sl.flight = f
	f.add(ops, p, forgot, 1, 0, n+sl.waiting)
	s.startFlight(f)
}

// endFlight marks the place: no flight was begun for it, although another may be in progress.
func (s *Store) endFlight(p *keyOps, now time.Duration) {
	t := s.table.setOf(p.tag)
	t.lock()
	defer t.unlock()
	if pl := t.find(p.tag, &p.shape); pl != nil {
		pl.flying = false // A flight in progress has its slot, and may have landed already.
		pl.quiet = now + max(time.Duration(s.trip.Load()), pl.hold/8)
	}
}
