package config

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// GuardConfig describes a guard that counts in store: for guard.New and
// guard.Guard.Reload, and for programs that add an Observer. It reads the keys of tokens.
// regions is what the file identity.region_db was opened as (region.Open), nil without
// one. An error about a file is a *FileError, or joins them: see Located.
//
// Package store/open opens the store and the region database that a configuration names,
// and then calls GuardConfig. A program that needs neither calls it with a store that it
// has made, such as memory.New(c.StoreConfig()), and links no client of a shared store.
//
// A *memory.Store is taken for store: memory; the error is ErrStoreChanged if the
// configuration has a shared store. To try rules of a shared store out in memory, see
// InMemory. Any other store belongs to the caller, who sets Local too.
func (c *Config) GuardConfig(store headgate.Store, regions rule.Regions) (guard.Config, error) {
	identity, err := c.identity(regions)
	if err != nil {
		return guard.Config{}, err
	}
	described := guard.Config{
		FairShare: c.FairShare, Rules: c.Rules, Store: store, Independent: c.Independent, Identity: identity, Folds: c.Folds,
		Namespace:    c.Namespace,
		ForwardsGRPC: c.Proxy.Upstream != nil && (c.Proxy.Upstream.Scheme == "h2c" || c.Proxy.Upstream.Scheme == "https"),
	}
	if _, own := store.(*memory.Store); !own { // That one answers at once: the budget is for stores behind a network.
		described.StoreTimeout, described.LocalShare = c.StoreTimeout, c.LocalShare
	} else if c.Shared != nil {
		return guard.Config{}, fmt.Errorf("config: store %s in place of %s: %w", c.Store, memoryWord, ErrStoreChanged)
	}
	return described, nil
}

// Warn logs what a Go program should know of its configuration: settings that headgate
// proxy alone uses, and HEADGATE_ variables that are misspelled.
func (c *Config) Warn(log *slog.Logger) {
	if c.environment {
		for _, warning := range MisspelledVariables(os.Environ()) {
			log.Warn("headgate: a variable is not known", "warning", warning)
		}
	}
	if len(c.proxyOnly) > 0 {
		log.Warn("headgate: this program does not use some settings of its configuration: they belong to headgate proxy",
			"settings", c.proxyOnly)
	}
}
