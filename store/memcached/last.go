package memcached

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// lastReturn returns a booking if it is the last one of its key.
type lastReturn struct {
	receipt headgate.Receipt
	plan    *limit.Plan
	looks   bool // only check, and return nothing
	is      bool
}

func (r *lastReturn) decide(it *item, now headgate.Instant) {
	now = it.time(now)
	r.is = false // The item may be another version.
	_, window, epoch := placeIn(&r.receipt)
	s := it.find(window, r.plan.Family())
	if s == nil || !s.plan.Issued(&s.cell, epoch, &r.receipt) || s.plan.Policy != r.plan.Policy || !s.plan.IsLast(&s.cell, &r.receipt) ||
		s.plan.CellFreeAt(&s.cell) <= now {
		return
	}
	r.is = true
	if r.looks {
		return
	}
	was := s.before()
	s.plan.ReturnLast(&s.cell, &r.receipt)
	it.settled(s, &was, now)
}

// ReturnLast implements headgate.LastReturner. It checks first, so that another booking can be
// tried again. Then it notes the receipt as returned, as Return does, and returns it. These are
// three calls. If another booking comes between them, the booking stays.
func (s *Store) ReturnLast(ctx context.Context, r *headgate.Receipt) (bool, error) {
	if err := s.usable(); err != nil {
		return false, err
	}
	plan := s.issuer(r)
	if r.Empty() || r.Cost == 0 || plan == nil || s.counted(&plan.Policy) {
		return false, nil
	}
	d, _, _ := placeIn(r)
	look := &lastReturn{receipt: *r, plan: plan, looks: true}
	if err := s.flights.do(ctx, d, &request{work: look}); err != nil || !look.is {
		return false, err
	}
	all, back := &unitReturn{}, &unitReturn{}
	all.add(plan, r)
	if err := s.serverOf(&d).note(ctx, &d, all, back); err != nil || len(back.receipts) == 0 {
		return false, err
	}
	last := &lastReturn{receipt: *r, plan: plan}
	err := s.flights.do(ctx, d, &request{work: last})
	return err == nil && last.is, err
}
