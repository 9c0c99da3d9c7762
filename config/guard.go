package config

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// NewGuard makes the guard that the configuration describes, on a store of its own
// (OpenStore). It opens the files that the configuration names. The connections of a
// shared store live as long as the process; who wants to close them, or to see its
// Stats, calls OpenStore and GuardConfig himself.
func (c *Config) NewGuard() (*guard.Guard, error) {
	store, err := c.OpenStore(StoreOptions{})
	if err != nil {
		return nil, err
	}
	described, err := c.GuardConfig(store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	g, err := guard.New(described)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return g, nil
}

// GuardConfig describes a guard on a store that is there already: for
// guard.Guard.Reload, and for those who add an Observer. It opens the files that
// the configuration names. Fair share is a part of it, with a proxy or without.
//
// store is an *Opened, or what guard.Guard.Store gives of a guard that was made on
// one; then the error is ErrStoreChanged if the configuration has another store, and
// Local is set where a rule falls back to it. It may also be a store of the caller's,
// who sets Local himself then. A *memory.Store is taken for store: memory; to try rules
// of a shared store out in memory, see InMemory.
func (c *Config) GuardConfig(store headgate.Store) (guard.Config, error) {
	identity, err := c.OpenIdentity()
	if err != nil {
		return guard.Config{}, err
	}
	described := guard.Config{
		FairShare: c.Proxy.FairShare, Rules: c.Rules, Store: store, Independent: c.Independent, Identity: identity,
	}
	switch s := store.(type) {
	case *Opened:
		err = s.describe(c, &described)
	case *memory.Store: // It answers at once: the budget is for those behind a network.
		if c.Shared != nil {
			err = fmt.Errorf("config: store %s in place of %s: %w", c.Store, memoryWord, ErrStoreChanged)
		}
	default:
		described.StoreTimeout, described.LocalShare = c.StoreTimeout, c.LocalShare
	}
	if err != nil {
		return guard.Config{}, err
	}
	return described, nil
}
