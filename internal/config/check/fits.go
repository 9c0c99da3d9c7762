package check

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/fits"
	"github.com/headgate/headgate/internal/store/prefetch"
)

// NewFit returns a Fit for a shared store: Memcached, or else Redis. It prepares a policy as the
// store does, through package prefetch, and connects to no server.
func NewFit(memcached bool) Fit {
	store, _ := prefetch.New(prefetch.Config{Source: countable(memcached), MaxKeys: 1}) // Constant settings cause no error.
	return func(p headgate.Policy) error {
		id, err := store.Prepare(p)
		if err == nil {
			store.Release(id)
		}
		return err
	}
}

// countable is a prefetch.Source that accepts the policies that a store can count. The value
// true means Memcached, and false means Redis.
type countable bool

// Prepare implements headgate.Store.
func (memcached countable) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	if memcached {
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
