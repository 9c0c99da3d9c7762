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
		if of := s.policies.Issuer(receipts[i].Policy); of != nil && !receipts[i].Empty() {
			r := receipts[i]
			r.Policy = of.Plan.id()
			theirs[of.Plan.at] = append(theirs[of.Plan.at], r)
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

// ReturnLast implements headgate.LastReturner.
func (s *Store) ReturnLast(ctx context.Context, r *headgate.Receipt) (returned bool, err error) {
	if !s.made() {
		return false, headgate.ErrNotMade
	}
	of := s.policies.Issuer(r.Policy)
	if of == nil || r.Empty() {
		return false, nil
	}
	store, ok := s.stores[of.Plan.at].(headgate.LastReturner)
	if !ok {
		return false, nil
	}
	theirs := *r
	theirs.Policy = of.Plan.id()
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
