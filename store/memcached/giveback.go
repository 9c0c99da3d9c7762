package memcached

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/meta"
)

// unitReturn returns the units of receipts of one key.
type unitReturn struct {
	receipts []headgate.Receipt
	plans    []*limit.Plan
}

func (r *unitReturn) add(plan *limit.Plan, receipt *headgate.Receipt) {
	if receipt.Empty() || receipt.Units() == 0 {
		return
	}
	r.receipts, r.plans = append(r.receipts, *receipt), append(r.plans, plan)
}

// decide returns units that are still counted. A state of another epoch does not know the receipt.
func (r *unitReturn) decide(it *item, now headgate.Instant) {
	now = it.time(now)
	for i := range r.receipts {
		_, window, epoch := placeIn(&r.receipts[i])
		s := it.find(window, r.plans[i].Family())
		if s == nil || !s.plan.Issued(&s.cell, epoch, &r.receipts[i]) {
			continue
		}
		was := s.before()
		if !sliding(s.plan) {
			r.plans[i].ReturnCell(&s.cell, &s.ended, &r.receipts[i], now)
		}
		for j := range s.rings {
			s.plan.ReturnWindows(&s.rings[j], &r.receipts[i])
		}
		it.settled(s, &was, now)
	}
}

// Return implements headgate.Store. Return first notes the receipt as returned, with add: only one
// process can succeed. Then the units are returned. After a failure between the two steps, they
// stay counted.
func (s *Store) Return(ctx context.Context, receipts []headgate.Receipt) error {
	if err := s.usable(); err != nil {
		return err
	}
	returns := map[digest]*unitReturn{}
	var errs []error
	for i := range receipts {
		r := &receipts[i]
		if r.Empty() || r.Units() == 0 {
			continue
		}
		plan := s.issuer(r)
		if plan == nil {
			continue // The policy was freed: its units have expired.
		}
		d, _, _ := placeIn(r)
		if s.counted(&plan.Policy) {
			errs = append(errs, s.giveBackCounted(ctx, d, plan, r))
			continue
		}
		if returns[d] == nil {
			returns[d] = &unitReturn{}
		}
		returns[d].add(plan, r)
	}
	for d, back := range returns {
		if err := s.giveBack(ctx, d, back); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// giveBack notes and returns the receipts of one key.
func (s *Store) giveBack(ctx context.Context, d digest, all *unitReturn) error {
	n := s.serverOf(&d)
	back := &unitReturn{}
	for begin := 0; begin < len(all.receipts); begin += meta.MaxRequests {
		end := min(begin+meta.MaxRequests, len(all.receipts))
		some := unitReturn{receipts: all.receipts[begin:end], plans: all.plans[begin:end]}
		if err := n.note(ctx, &d, &some, back); err != nil {
			return err
		}
	}
	if len(back.receipts) == 0 {
		return nil
	}
	return s.flights.do(ctx, d, &request{work: back})
}

// note records that receipts of one key are returned, and adds to back those without an earlier
// note. A receipt without a note is not returned.
func (n *node) note(ctx context.Context, d *digest, all, back *unitReturn) error {
	asked, answers := make([]meta.Request, len(all.receipts)), make([]meta.Response, len(all.receipts))
	for i := range asked {
		asked[i] = meta.Request{
			Kind: meta.Add, Key: d.noteOf(all.receipts[i].Nonce), TTL: limit.Life(all.plans[i].Policy) + n.slack,
		}
	}
	if err := n.do(ctx, "note what is returned", asked, answers); err != nil {
		return err
	}
	for i := range answers {
		if answers[i].Status == meta.OK {
			back.add(all.plans[i], &all.receipts[i])
		}
	}
	return nil
}
