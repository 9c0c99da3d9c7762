package config

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/store/fits"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/store/prefetch"
)

// checkFits finds limits that the shared store cannot count, or not with units that
// are held, and points at the field that it names. all are the limits of the rule, and
// of each of its overrides.
func (s *section) checkFits(r *guard.Rule, all []limits) {
	if s.counting.fits == nil {
		return
	}
	s.eachPolicy(r, all, func(p headgate.Policy, at value) bool {
		err := s.counting.fit(p)
		if _, found := errors.AsType[*limit.PolicyError](err); found { // Others are of too many, which checkPolicies tells.
			s.policyFault(at, err)
		}
		return !s.full
	})
}

// fit tells whether the store can count a policy, and keeps nothing of it.
func (c *counting) fit(p headgate.Policy) error {
	id, err := c.fits.Prepare(p)
	if err == nil {
		c.fits.Release(id)
	}
	return err
}

// newFits gives a store that prepares what a shared store of a kind does, through the
// same package prefetch, and decides nothing.
func newFits(kind StoreKind) (headgate.Store, error) {
	return prefetch.New(prefetch.Config{Source: countable(kind), MaxKeys: 1})
}

// countable is a prefetch.Source that knows what a store can count, and reaches none.
type countable StoreKind

// Prepare implements headgate.Store.
func (k countable) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	if StoreKind(k) == KindMemcached {
		return 1, fits.Memcached(p)
	}
	return 1, fits.Redis(p)
}

// Release implements headgate.Store. Prepare keeps nothing.
func (countable) Release(headgate.PolicyID) {}

// Apply implements headgate.Store.
func (countable) Apply(context.Context, []headgate.Op, []headgate.Decision) error {
	return headgate.ErrUnavailable
}

// Grant implements prefetch.Source.
func (countable) Grant(context.Context, []headgate.Op, []int64, []headgate.Decision) error {
	return headgate.ErrUnavailable
}

// Return implements headgate.Store.
func (countable) Return(context.Context, []headgate.Receipt) error { return headgate.ErrUnavailable }

// Forget implements headgate.Store.
func (countable) Forget(context.Context, []headgate.Op) error { return headgate.ErrUnavailable }
