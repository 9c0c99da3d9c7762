// Package fairshare is the room of fair share in the daemon: its component, its metrics, and the call of headgate ctl shares.
package fairshare

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// Component is the component of fair share. It stands behind the rules, whose guard divides the capacity.
type Component struct {
	component.Defaults

	log     *slog.Logger
	started *config.Config
	config  atomic.Pointer[config.Config] // The configuration in effect.
	guard   Divider
	report  Counts
}

// Divider is what the component needs of a guard.
type Divider interface {
	Shares() (fairshare.Shares, bool)
}

// Counts is what the component needs of a report.
type Counts interface {
	Stage(name string) (report.RuleCounts, bool)
	KeyNames() *rule.KeyNames
}

// New makes the component.
func New(log *slog.Logger, c *config.Config, divider Divider, counts Counts) *Component {
	made := &Component{log: log, started: c, guard: divider, report: counts}
	made.config.Store(c)
	return made
}

// Start logs the settings when the instance serves.
func (c *Component) Start(context.Context) (func(), error) {
	return func() { c.logChange(nil, c.started) }, nil
}

// Reload implements component.Component. The guard takes the settings with the rules.
func (c *Component) Reload(next *config.Config) (component.Change, error) {
	return component.Change{Commit: func() { c.logChange(settingsOf(c.config.Swap(next)), next) }}, nil
}

// Metrics implements component.Component.
func (c *Component) Metrics(to *prom.Config) { to.Shares = c.metrics }

// Status implements component.Component.
func (c *Component) Status(s *admin.Status) { s.FairShare = c.status() }

// Calls implements component.Component.
func (c *Component) Calls() []calls.Call {
	return []calls.Call{{Pattern: "GET /api/v1/shares", Scope: config.ScopeRead, Handler: calls.OwnSite(c.list)}}
}

// settingsOf returns the fair share of a configuration, or nil when fair share is off.
func settingsOf(c *config.Config) *guard.FairShare {
	if f := c.FairShare; f != nil && f.Mode != guard.Off {
		return f
	}
	return nil
}

// shares returns the current shares and the settings in effect. During a reload, the settings
// may still be the previous settings.
func (c *Component) shares() (fairshare.Shares, *guard.FairShare, bool) {
	settings := settingsOf(c.config.Load())
	if settings == nil {
		return fairshare.Shares{}, nil, false
	}
	now, ok := c.guard.Shares()
	return now, settings, ok
}

// metrics returns the current shares for metrics.
func (c *Component) metrics() (prom.Shares, bool) {
	now, settings, ok := c.shares()
	if !ok {
		return prom.Shares{}, false
	}
	return prom.Shares{Shares: now, Shadow: settings.Mode == guard.Shadow}, true
}

// status returns nil when fair share is off.
func (c *Component) status() *admin.FairShareStatus {
	now, settings, ok := c.shares()
	if !ok {
		return nil
	}
	s := &admin.FairShareStatus{
		Mode: settings.Mode.String(), Capacity: now.Capacity, CycleSeconds: now.Length.Seconds(), Clients: len(now.Clients),
		LastAdmitted: now.LastAdmitted, LastCapacity: now.LastCapacity, Reasons: map[string]uint64{},
	}
	counted, _ := c.report.Stage(guard.FairShareName)
	var all admin.RuleStatus
	all.Reasons = s.Reasons
	for _, n := range counted.Counts {
		component.AddCount(&all, n)
	}
	s.Allowed, s.Refused = all.Allowed, all.Refused
	return s
}

// logChange logs that fair share starts, changes or ends. was is the previous fair share,
// or nil. Shadow mode has its own lines, because it refuses no request.
func (c *Component) logChange(was *guard.FairShare, now *config.Config) {
	log, is := c.log, settingsOf(now)
	passed, passes := was != nil && was.Mode == guard.Shadow, is != nil && is.Mode == guard.Shadow
	if is != nil {
		c.logTerms(was, is)
	}
	switch {
	case passes && !passed:
		log.Info("shadow is on: fair share refuses nothing, and counts what it would have refused")
	case passed && is == nil:
		log.Info("shadow is off: fair share no longer counts requests")
	case passed && !passes:
		log.Info("shadow is off: fair share refuses requests over a share")
	}
	switch {
	case was == nil || is != nil:
	case now.FairShare != nil:
		log.Info("fair share has ended: its mode is off")
	default:
		log.Info("fair share has ended: the configuration has no fair_share section")
	}
}

// logTerms logs the settings of fair share when it starts or when a setting changes.
func (c *Component) logTerms(was, is *guard.FairShare) {
	terms := []any{
		"capacity", is.Capacity, "cycle", is.Cycle.String(), "mode", is.Mode.String(),
		"division", is.Division.String(), "reclaim", is.Reclaim.String(), "client", is.Client.String(),
	}
	if was != nil {
		changed := changedTerms(was, is)
		if len(changed) == 0 {
			return
		}
		terms = append(terms, "changed", strings.Join(changed, ", "))
	}
	c.log.Info("fair share", terms...)
}

// changedTerms returns the configuration names of the settings that differ.
func changedTerms(a, b *guard.FairShare) []string {
	var names []string
	for _, term := range [...]struct {
		name    string
		differs bool
	}{
		{"match", !reflect.DeepEqual(a.Match, b.Match)},
		{"exempt", !reflect.DeepEqual(a.Exempt, b.Exempt)},
		{"client", a.Client != b.Client},
		{"anonymous", a.Anonymous != b.Anonymous},
		{"capacity", a.Capacity != b.Capacity},
		{"cycle", a.Cycle != b.Cycle},
		{"reservation", a.Reservation != b.Reservation},
		{"division", a.Division != b.Division},
		{"reclaim", a.Reclaim != b.Reclaim},
		{"weights", !maps.Equal(a.Weights, b.Weights)},
		{"new_clients_per_cycle", a.NewClientsPerCycle != b.NewClientsPerCycle},
		{"forget_after", a.ForgetAfter != b.ForgetAfter},
		{"max_clients", a.MaxClients != b.MaxClients},
		{"cost", a.Cost != b.Cost || a.CostHeader != b.CostHeader},
		{"max_cost", a.MaxCost != b.MaxCost},
		{"count_once", a.CountOnce != b.CountOnce || a.IDHeader != b.IDHeader},
		{"trusted_names", a.TrustNames != b.TrustNames},
		{"mode", a.Mode != b.Mode},
	} {
		if term.differs {
			names = append(names, term.name)
		}
	}
	return names
}
