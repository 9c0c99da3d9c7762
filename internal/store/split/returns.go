package split

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
)

// Return implements headgate.Store. Return calls both stores at once if it has receipts of both.
func (s *Store) Return(ctx context.Context, receipts []headgate.Receipt) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	var theirs [2][]headgate.Receipt
	for i := range receipts {
		if policy := s.policies.Issuer(receipts[i].Policy); policy != nil && !receipts[i].Empty() {
			r := receipts[i]
			r.Policy = policy.Plan.id()
			theirs[policy.Plan.at] = append(theirs[policy.Plan.at], r)
		}
	}
	switch {
	case len(theirs[main])+len(theirs[perSecond]) == 0:
		return nil
	case len(theirs[perSecond]) == 0:
		return s.stores[main].Return(ctx, theirs[main])
	case len(theirs[main]) == 0:
		return s.stores[perSecond].Return(ctx, theirs[perSecond])
	}
	return s.both(func(at side) error { return s.stores[at].Return(ctx, theirs[at]) })
}

// undo returns takes of refused groups. A bucket whose last take is undone is as if the take had
// never been made. A Return would count as returned units, which lower other returns.
func (s *Store) undo(ctx context.Context, back []headgate.Receipt) error {
	var rest []headgate.Receipt
	for i := range back {
		if policy := s.policies.Issuer(back[i].Policy); policy == nil || policy.Plan.is.Algorithm > headgate.LeakyBucket {
			rest = append(rest, back[i])
		} else if undone, err := s.ReturnLast(ctx, &back[i]); err == nil && !undone {
			rest = append(rest, back[i])
		}
	}
	return s.Return(ctx, rest)
}

// ReturnLast implements headgate.LastReturner.
func (s *Store) ReturnLast(ctx context.Context, r *headgate.Receipt) (returned bool, err error) {
	if !s.made() {
		return false, headgate.ErrNotMade
	}
	policy := s.policies.Issuer(r.Policy)
	if policy == nil || r.Empty() {
		return false, nil
	}
	store, ok := s.stores[policy.Plan.at].(headgate.LastReturner)
	if !ok {
		return false, nil
	}
	theirs := *r
	theirs.Policy = policy.Plan.id()
	return store.ReturnLast(ctx, &theirs)
}

// Forget implements headgate.Store. Forget calls both stores at once.
func (s *Store) Forget(ctx context.Context, ops []headgate.Op) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	return s.both(func(at side) error { return s.stores[at].Forget(ctx, ops) })
}

// both calls both stores at once, and joins their errors.
func (s *Store) both(query func(side) error) error {
	second := make(chan error, 1)
	go func() { second <- query(perSecond) }()
	err := query(main)
	return errors.Join(err, <-second)
}
