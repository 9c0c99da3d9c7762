// Package rules is the room of the rules in the daemon: the component that decides requests, with its store, its guard and its report,
// and the calls of headgate ctl top and ban. The stages of the guard have rooms of their own: cmd/internal/fairshare and
// cmd/internal/throttle.
package rules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/fairshare"
	"github.com/headgate/headgate/cmd/internal/throttle"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/rule"
)

// Rules is the component that decides requests: the store, the guard, and the report.
type Rules struct {
	component.Defaults

	host    *component.Host
	log     *slog.Logger
	started *config.Config
	config  atomic.Pointer[config.Config] // The configuration of the rules in effect.
	store   *open.Opened
	guard   *guard.Guard
	report  *report.Report
	meter   headgate.Meter // nil without metering
	leases  *bucket.Table  // nil without leases for rules
	stages  []component.Component
	// described is the configuration of the guard in effect. The caller of Reload guards it.
	described guard.Config
	// following ends the goroutine of followBans. It is nil without one.
	following context.CancelFunc
	followed  sync.WaitGroup
}

// returnsDrain bounds how long Drain waits to return unused units to the store.
const returnsDrain = time.Second

// New opens the store, and creates the report and the guard. used is nil without metering, and leases without leases for rules.
func New(host *component.Host, c *config.Config, used headgate.Meter, leases *bucket.Table) (*Rules, error) {
	counted, err := c.ReportConfig(host.Log)
	if err != nil {
		return nil, err
	}
	counted.Instance = host.Name(c)
	store, err := open.Store(c, storeOptions(host))
	if err != nil {
		return nil, err
	}
	r := &Rules{host: host, log: host.Log, started: c, store: store, report: report.New(counted), meter: used, leases: leases}
	r.config.Store(c)
	described, err := open.GuardConfig(c, store)
	if err == nil {
		described.Meter, described.Leases = used, leases
		described.Observer = r.report.FollowConfig(&described)
		r.described = described
		r.guard, err = guard.New(described)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	r.stages = []component.Component{fairshare.New(r.log, c, r.guard, r.report), throttle.New(c, r.store.Throttle)}
	return r, nil
}

// Components are the rules, and then the stages of their guard.
func (r *Rules) Components() []component.Component {
	return append([]component.Component{r}, r.stages...)
}

// Guard decides the requests.
func (r *Rules) Guard() *guard.Guard { return r.guard }

// Report counts the requests.
func (r *Rules) Report() *report.Report { return r.report }

// Store has the counters.
func (r *Rules) Store() *open.Opened { return r.store }

// Trusts reports whether identity.trusted_proxies contains the address.
func (r *Rules) Trusts(peer netip.Addr) bool { return r.guard.Identity().Trusts(peer) }

// followEvery is the time after which an instance refuses a key that another one has banned.
const followEvery = time.Second

// Start follows the bans that operators make in other instances with the same store.
func (r *Rules) Start(context.Context) (begin func(), err error) {
	if !r.store.Shared() {
		return begin, nil
	}
	return func() {
		ctx, cancel := context.WithCancel(context.Background())
		r.following = cancel
		r.followed.Go(func() { r.followBans(ctx) })
	}, nil
}

// followBans ends with ctx. An unreachable store is reported by the decisions that need it.
func (r *Rules) followBans(ctx context.Context) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		bounded, cancel := context.WithTimeout(ctx, followEvery)
		if err := r.guard.FollowBans(bounded); err != nil {
			r.log.Debug("bans of other instances were not read", "error", err)
		}
		cancel()
	}
}

// Reload prepares the rules, identity and fair share. Counters, shares, bans and waiters stay.
func (r *Rules) Reload(next *config.Config) (component.Change, error) {
	if r.started.StoreConfig().BlockShare < 0 && next.StoreConfig().BlockShare >= 0 {
		return component.Change{}, errors.New("app: the first rule of sliding_log or sliding_window needs memory that is allocated at " +
			"the start: restart headgate, or use another algorithm")
	}
	logged, err := next.ReportConfig(r.log)
	if err != nil {
		return component.Change{}, err
	}
	logged.Instance = r.host.Name(next)
	described, err := open.GuardConfig(next, r.store)
	if err != nil {
		return component.Change{}, err
	}
	var show func()
	described.Meter, described.Leases = r.meter, r.leases
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
		return component.Change{}, err
	}
	commit := func() {
		r.report.Configure(logged)
		prepared.Commit()
		r.described = described
		show()
		r.config.Store(next)
	}
	return component.Change{Commit: commit, Discard: prepared.Discard}, nil
}

// Drain returns the unused units of ended requests to the store, and closes the store.
func (r *Rules) Drain(ctx context.Context) error {
	if r.following != nil {
		r.following()
		r.followed.Wait()
	}
	ctx, cancel := component.Lastly(ctx, returnsDrain)
	defer cancel()
	if err := r.guard.Drain(ctx); err != nil {
		r.log.Warn("units that requests did not use were not returned: they stay counted until they expire", "error", err)
	}
	r.close()
	return nil
}

func (r *Rules) close() {
	if err := r.store.Close(); err != nil {
		r.log.Warn("the store was not closed cleanly", "error", err)
	}
	r.report.Close()
}

// Metrics implements component.Component.
func (r *Rules) Metrics(c *prom.Config) {
	c.Report, c.Guard, c.Store = r.report, r.guard, r.memoryStats
	if r.store.Shared() {
		c.Shared = r.store.State
	}
}

// Status implements component.Component.
func (r *Rules) Status(s *admin.Status) {
	s.Requests, s.Rules, s.Store = r.requestStatus(), r.ruleStatus(), r.storeStatus()
}

// Calls implements component.Component.
func (r *Rules) Calls() []calls.Call {
	return append(r.keyCalls(), []calls.Call{
		{Pattern: "DELETE /api/v1/bans/{id}", Scope: config.ScopeAdminister, Handler: calls.OwnSiteOrProgram(
			calls.Parameters(r.log, r.liftBan, "reason", "dry_run"))},
		{Pattern: "GET /api/v1/bans", Scope: config.ScopeRead, Handler: calls.OwnSite(r.listBans)},
		{Pattern: "GET /api/v1/top", Scope: config.ScopeRead, Handler: calls.OwnSite(r.listTop)},
	}...)
}
