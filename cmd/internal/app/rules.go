package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// rules is the component that decides requests: the store, the guard, and the report.
type rules struct {
	defaults

	log     *slog.Logger
	started *config.Config
	config  atomic.Pointer[config.Config] // The configuration of the rules in effect.
	store   *open.Opened
	guard   *guard.Guard
	report  *report.Report
	meter   headgate.Meter // nil without metering
	leases  *ruleLeases    // nil without leases for rules
	// described is the configuration of the guard in effect. The caller of Reload guards it.
	described guard.Config
}

// returnsDrain bounds how long Drain waits to return unused units to the store.
const returnsDrain = time.Second

// newRules opens the store, and creates the report and the guard. used is nil without metering.
func newRules(o *Options, used headgate.Meter, held *ruleLeases) (*rules, error) {
	c := o.Config
	counted, err := c.ReportConfig(o.Log)
	if err != nil {
		held.close()
		return nil, err
	}
	store, err := open.Store(c, storeOptions(o))
	if err != nil {
		held.close()
		return nil, err
	}
	r := &rules{log: o.Log, started: c, store: store, report: report.New(counted), meter: used, leases: held}
	r.config.Store(c)
	described, err := open.GuardConfig(c, store)
	if err == nil {
		described.Meter, described.Leases = used, held.buckets()
		described.Observer = r.report.FollowConfig(&described)
		r.described = described
		r.guard, err = guard.New(described)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// Start logs the settings of fair share when the instance serves.
func (r *rules) Start(context.Context) (func(), error) {
	return func() { r.logFairShare(nil, r.started) }, nil
}

// Reload prepares the rules, identity and fair share. Counters, shares, bans and waiters stay.
func (r *rules) Reload(next *config.Config) (Change, error) {
	if r.started.StoreConfig().BlockShare < 0 && next.StoreConfig().BlockShare >= 0 {
		return Change{}, errors.New("app: the first rule of sliding_log or sliding_window needs memory that is allocated at the start: " +
			"restart headgate, or use another algorithm")
	}
	if r.leases == nil && slices.ContainsFunc(next.Rules, func(one guard.Rule) bool { return one.Lease.Resource != "" }) {
		return Change{}, errors.New("app: the first rule with a lease needs leases that begin at the start: restart headgate")
	}
	logged, err := next.ReportConfig(r.log)
	if err != nil {
		return Change{}, err
	}
	described, err := open.GuardConfig(next, r.store)
	if err != nil {
		return Change{}, err
	}
	var show func()
	described.Meter, described.Leases = r.meter, r.leases.buckets()
	described.Observer, show = r.report.PrepareConfig(&described)
	prepared, err := r.guard.Prepare(described)
	if err != nil {
		if lacks, found := errors.AsType[*guard.UnsuppliedError](err); found && lacks.Part.Supply() == rule.SupplySubjects &&
			next.Proxy.TLS.ClientCA != r.started.Proxy.TLS.ClientCA {
			err = fmt.Errorf("%w: proxy.tls.client_ca changes only at a restart: restart headgate", err)
		}
		if next.MaxMemory > r.started.MaxMemory {
			err = fmt.Errorf("%w: max_memory changes only at a restart: restart headgate for more", err)
		}
		return Change{}, err
	}
	commit := func() {
		r.report.Configure(logged)
		prepared.Commit()
		r.described = described
		show()
		r.logFairShare(fairShareOf(r.config.Swap(next)), next)
	}
	return Change{Commit: commit, Discard: prepared.Discard}, nil
}

// Drain returns the unused units of ended requests to the store, and closes the store.
func (r *rules) Drain(ctx context.Context) error {
	ctx, cancel := lastly(ctx, returnsDrain)
	defer cancel()
	if err := r.guard.Drain(ctx); err != nil {
		r.log.Warn("units that requests did not use were not returned: they stay counted until they expire", "error", err)
	}
	r.close()
	return nil
}

func (r *rules) close() {
	r.leases.close()
	if err := r.store.Close(); err != nil {
		r.log.Warn("the store was not closed cleanly", "error", err)
	}
	r.report.Close()
}

// Metrics implements Component.
func (r *rules) Metrics(c *prom.Config) {
	c.Report, c.Guard, c.Store, c.Shares, c.Throttle = r.report, r.guard, r.memoryStats, r.promShares, r.promThrottle
	if r.leases != nil {
		c.Collectors = append(c.Collectors, prom.RuleLeases(r.leases.table.Stats))
	}
	if r.store.Shared() {
		c.Shared = r.store.State
	}
}

// Status implements Component.
func (r *rules) Status(s *admin.Status) {
	s.Requests, s.Rules, s.Store, s.FairShare = r.requestStatus(), r.ruleStatus(), r.storeStatus(), r.fairShareStatus()
	s.Throttle = r.throttleStatus()
}
