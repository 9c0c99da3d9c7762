package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/admin"
	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/report/prom"
	"github.com/headgate/headgate/store/open"
)

// rules is the part that decides: the store, the guard, and the report of its decisions.
type rules struct {
	defaults

	log     *slog.Logger
	started *config.Config
	config  atomic.Pointer[config.Config] // whose rules are in effect
	store   *open.Opened
	guard   *guard.Guard
	report  *report.Report
}

// returnsDrain bounds how long the end waits for units that ended requests did not use.
const returnsDrain = time.Second

// newRules opens the store, and makes the report and the guard.
func newRules(o *Options) (*rules, error) {
	c := o.Config
	counted, err := c.ReportConfig(o.Log)
	if err != nil {
		return nil, err
	}
	store, err := open.Store(c, storeOptions(o))
	if err != nil {
		return nil, err
	}
	r := &rules{log: o.Log, started: c, store: store, report: report.New(counted)}
	r.config.Store(c)
	described, err := open.GuardConfig(c, store)
	if err == nil {
		described.Observer = r.report.FollowConfig(&described)
		r.guard, err = guard.New(described)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// Start logs what is shared.
func (r *rules) Start(context.Context) (func(), error) {
	return func() { r.tellFairShare(nil, r.started) }, nil
}

// Reload prepares the rules, identity and fair share. Counters, shares, bans and requests
// that wait go on.
func (r *rules) Reload(next *config.Config) (Change, error) {
	if r.started.StoreConfig().BlockShare < 0 && next.StoreConfig().BlockShare >= 0 {
		return Change{}, errors.New("app: the first rule of sliding_log or sliding_window needs memory that is set apart at the start: " +
			"restart headgate, or use another algorithm")
	}
	described, err := open.GuardConfig(next, r.store)
	if err != nil {
		return Change{}, err
	}
	var show func()
	described.Observer, show = r.report.PrepareConfig(&described)
	prepared, err := r.guard.Prepare(described)
	if err != nil {
		if next.MaxMemory > r.started.MaxMemory {
			err = fmt.Errorf("%w: max_memory stays that of the start: restart headgate for more", err)
		}
		return Change{}, err
	}
	commit := func() {
		prepared.Commit()
		show()
		r.tellFairShare(fairShareOf(r.config.Swap(next)), next)
	}
	return Change{Commit: commit, Discard: prepared.Discard}, nil
}

// Drain returns to the store what ended requests did not use, and closes it.
func (r *rules) Drain(ctx context.Context) error {
	// Requests may have used up all of ctx.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnsDrain)
	defer cancel()
	if err := r.guard.Drain(ctx); err != nil {
		r.log.Warn("units that requests did not use were not returned: they stay counted until they expire", "error", err)
	}
	r.close()
	return nil
}

func (r *rules) close() {
	if err := r.store.Close(); err != nil {
		r.log.Warn("the store was not closed cleanly", "error", err)
	}
	r.report.Close()
}

// Metrics implements Part.
func (r *rules) Metrics(c *prom.Config) {
	c.Report, c.Store, c.Shares = r.report, r.memoryStats, r.promShares
	if r.store.Shared() {
		c.Shared = r.store.State
	}
}

// Status implements Part.
func (r *rules) Status(s *admin.Status) {
	s.Requests, s.Rules, s.Store, s.FairShare = r.requestStatus(), r.ruleStatus(), r.storeStatus(), r.fairShareStatus()
}
