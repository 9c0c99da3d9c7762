package config

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// NewGuard makes the guard that the configuration describes, on a store in memory
// of its own. It opens the files that the configuration names.
func (c *Config) NewGuard() (*guard.Guard, error) {
	store, err := memory.New(c.StoreConfig())
	if err != nil {
		return nil, err
	}
	described, err := c.GuardConfig(store)
	if err != nil {
		return nil, err
	}
	return guard.New(described)
}

// GuardConfig describes a guard on a store that is there already: for
// guard.Guard.Reload, and for those who add an Observer. It opens the files that
// the configuration names.
func (c *Config) GuardConfig(store headgate.Store) (guard.Config, error) {
	identity, err := c.OpenIdentity()
	if err != nil {
		return guard.Config{}, err
	}
	described := guard.Config{Rules: c.Rules, Store: store, Independent: c.Independent, Identity: identity}
	if _, local := store.(*memory.Store); !local { // It answers at once: the budget is for those behind a network.
		described.StoreTimeout = c.StoreTimeout
	}
	return described, nil
}
