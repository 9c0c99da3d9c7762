package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/store/memory"
)

// NewGuard makes the guard that the configuration describes, on a store of its own
// (OpenStore). It opens the files that the configuration names.
//
// The guard logs to slog.Default, as it is now: refusals as log.decisions says, servers
// of a shared store that are lost or answer again, and, once, settings of the file
// that headgate proxy alone uses and HEADGATE_ variables that are misspelled. It counts into a report.Report (report.Of), which
// prom.Guard shows to Prometheus. See Follow for reloads.
//
// The connections of a shared store live as long as the process. A program that closes
// them, or logs elsewhere, calls OpenStore, ReportConfig and GuardConfig itself.
func (c *Config) NewGuard() (*guard.Guard, error) {
	log := slog.Default()
	counted, err := c.ReportConfig(log)
	if err != nil {
		return nil, err
	}
	store, err := c.OpenStore(StoreOptions{Log: log})
	if err != nil {
		return nil, err
	}
	g, err := c.newGuard(store, report.New(counted))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if c.environment {
		for _, warning := range MisspelledVariables(os.Environ()) {
			log.Warn("headgate: a variable is not known", "warning", warning)
		}
	}
	if len(c.proxyOnly) > 0 {
		log.Warn("headgate: this program does not use some settings of its configuration: they belong to headgate proxy",
			"settings", c.proxyOnly)
	}
	return g, nil
}

func (c *Config) newGuard(store *Opened, counted *report.Report) (*guard.Guard, error) {
	described, err := c.GuardConfig(store)
	if err != nil {
		return nil, err
	}
	var show func()
	described.Observer, show = counted.PrepareConfig(&described)
	g, err := guard.New(described)
	if err != nil {
		return nil, err
	}
	counted.Reloads.Started(time.Now())
	show()
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
		FairShare: c.FairShare, Rules: c.Rules, Store: store, Independent: c.Independent, Identity: identity, Folds: c.Folds,
		Namespace:    c.Namespace,
		ForwardsGRPC: c.Proxy.Upstream != nil && (c.Proxy.Upstream.Scheme == "h2c" || c.Proxy.Upstream.Scheme == "https"),
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
