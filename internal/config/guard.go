package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

var errUnreadNetworks = errors.New("config: Parse does not read networks_file: use Load or LoadText")

// GuardConfig returns the configuration of a guard that counts in store, for guard.New and
// guard.Guard.Reload. It reads the keys for tokens and the bodies of refusals. regions is the opened database of
// identity.region_db (see open.Region), or nil. An error about a file is a *FileError, or
// joins several: see Located.
//
// Package config/open opens the store and the region database that a configuration names,
// and then calls GuardConfig. A program that needs neither can pass its own store, such as
// memory.New(c.StoreConfig()). Such a program links no client of a shared store.
//
// A *memory.Store fits only store: memory. If the configuration has a shared store, the error
// is ErrStoreChanged. To try the rules of a shared store in memory, see InMemory. For any other
// store, the caller sets Local too.
func (c *Config) GuardConfig(store headgate.Store, regions rule.Regions) (guard.Config, error) {
	if c.unreadNetworks {
		return guard.Config{}, errUnreadNetworks
	}
	identity, err := c.identity(regions)
	if err != nil {
		return guard.Config{}, err
	}
	rules, err := c.rulesWithBodies()
	if err != nil {
		return guard.Config{}, err
	}
	described := guard.Config{
		FairShare: c.FairShare, Exempt: c.Exempt, Rules: rules, Domains: c.Domains, DomainsMode: c.domainsMode,
		Store: store, Independent: c.Independent, Identity: identity, Folds: c.Folds,
		Namespace:     c.Namespace,
		Logged:        c.Log.logged(),
		RetryAfterMax: c.RetryAfterMax, XShouldRetry: c.XShouldRetry,
		LeaseTimeout: c.StoreTimeout,
		WithoutState: c.Source != nil && c.Source.WithoutState == RefuseWithoutState && !c.sourceKnown,
		ForwardsGRPC: c.Proxy.Upstream != nil && (c.Proxy.Upstream.Scheme == "h2c" || c.Proxy.Upstream.Scheme == "https"),
	}
	if _, own := store.(*memory.Store); !own { // A store in memory answers at once: the timeout is for stores behind a network.
		described.StoreTimeout, described.LocalShare = c.StoreTimeout, c.LocalShare
	} else if c.Shared != nil {
		return guard.Config{}, fmt.Errorf("config: store %s in place of %s: %w", c.Store, memoryWord, ErrStoreChanged)
	}
	if described.Quotas, err = c.Quotas(); err != nil {
		return guard.Config{}, fmt.Errorf("config: %w", err)
	}
	if c.Server != nil {
		described.MaxSentLimits = c.Server.RateLimitService.MaxSentLimits
		described.RefusalsMemory = c.Server.RateLimitService.LocalCache
	}
	err = c.AddThrottle(&described, nil)
	return described, err
}

// Quotas returns the plans and customers for guard.Config.Quotas. They are nil if no rule has a quota.
func (c *Config) Quotas() (*guard.Quotas, error) {
	if !slices.ContainsFunc(c.Rules, func(r guard.Rule) bool { return r.Quota != "" }) {
		return nil, nil //nolint:nilnil // Without rules of quotas, there are no Quotas.
	}
	if c.quotas != nil {
		return c.quotas, nil
	}
	if c.Source != nil {
		return guard.NewQuotas(c.withPlaceholders(), cmp.Or(c.DefaultPlan, unknownPlan), c.Customers)
	}
	return guard.NewQuotas(c.Plans, c.DefaultPlan, c.Customers)
}

// unknownPlan is the name of the default plan if the file has none.
const unknownPlan = "unknown"

// withPlaceholders returns the plans with further ones for those that only the source has. Until the source is known,
// these plans are missing.
func (c *Config) withPlaceholders() []guard.Plan {
	all := slices.Clone(c.Plans)
	add := func(name string) {
		if !slices.ContainsFunc(all, func(p guard.Plan) bool { return p.Name == name }) {
			all = append(all, guard.Plan{Name: name, Missing: true, Calendar: calendar.Default()})
		}
	}
	add(cmp.Or(c.DefaultPlan, unknownPlan))
	for i := range c.Customers {
		if plan := c.Customers[i].Plan; plan != "" {
			add(plan)
		}
	}
	return all
}

// AddThrottle gives a guard.Config of GuardConfig the throttle of the configuration, if there is
// one. former is the throttle before a reload, or nil: the next one has its requests. GuardConfig
// itself begins a new throttle, which knows no requests of former ones.
func (c *Config) AddThrottle(described *guard.Config, former *throttler.Stage) error {
	if described.Stages = nil; c.Throttle == nil {
		return nil
	}
	settings := *c.Throttle
	settings.Identity, settings.Folds = described.Identity, described.Folds
	begin := throttler.New
	if former != nil {
		begin = former.With
	}
	stage, err := begin(settings)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	described.Stages = []guard.Stage{stage}
	return nil
}

// Warn logs settings that only headgate proxy uses, and misspelled HEADGATE_ variables.
func (c *Config) Warn(log *slog.Logger) {
	if c.environment {
		for _, warning := range MisspelledVariables(os.Environ()) {
			log.Warn("headgate: unknown environment variable", "warning", warning)
		}
	}
	if len(c.proxyOnly) > 0 {
		log.Warn("headgate: some settings have no effect here: only headgate proxy uses them",
			"settings", c.proxyOnly)
	}
}
