package app

import (
	"maps"
	"reflect"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

// fairShareOf returns the fair share of a configuration, or nil when fair share is off.
func fairShareOf(c *config.Config) *guard.FairShare {
	if f := c.FairShare; f != nil && f.Mode != guard.Off {
		return f
	}
	return nil
}

// shares returns the current shares and the settings in effect. During a reload, the settings
// may still be the previous settings.
func (r *rules) shares() (fairshare.Shares, *guard.FairShare, bool) {
	settings := fairShareOf(r.config.Load())
	if settings == nil {
		return fairshare.Shares{}, nil, false
	}
	now, ok := r.guard.Shares()
	return now, settings, ok
}

// promShares returns the current shares for metrics.
func (r *rules) promShares() (prom.Shares, bool) {
	now, settings, ok := r.shares()
	if !ok {
		return prom.Shares{}, false
	}
	return prom.Shares{Shares: now, Shadow: settings.Mode == guard.Shadow}, true
}

// fairShareStatus returns nil when fair share is off.
func (r *rules) fairShareStatus() *admin.FairShareStatus {
	now, settings, ok := r.shares()
	if !ok {
		return nil
	}
	s := &admin.FairShareStatus{
		Mode: settings.Mode.String(), Capacity: now.Capacity, CycleSeconds: now.Length.Seconds(), Clients: len(now.Clients),
		LastAdmitted: now.LastAdmitted, LastCapacity: now.LastCapacity, Reasons: map[string]uint64{},
	}
	counted, _ := r.report.Stage(guard.FairShareName)
	var all admin.RuleStatus
	all.Reasons = s.Reasons
	for _, n := range counted.Counts {
		addCount(&all, n)
	}
	s.Allowed, s.Refused = all.Allowed, all.Refused
	return s
}

// logFairShare logs that fair share starts, changes or ends. was is the previous fair share,
// or nil. Shadow mode has its own lines, because it refuses no request.
func (r *rules) logFairShare(was *guard.FairShare, now *config.Config) {
	log, is := r.log, fairShareOf(now)
	passed, passes := was != nil && was.Mode == guard.Shadow, is != nil && is.Mode == guard.Shadow
	if is != nil {
		r.logTerms(was, is)
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
func (r *rules) logTerms(was, is *guard.FairShare) {
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
	r.log.Info("fair share", terms...)
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
