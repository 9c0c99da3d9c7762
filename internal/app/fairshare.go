package app

import (
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/fairshare"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/report/prom"
)

// fairShareOf gives the fair share of a configuration; nil is none.
func fairShareOf(c *config.Config) *guard.FairShare {
	if f := c.Proxy.FairShare; f != nil && f.Mode != guard.Off {
		return f
	}
	return nil
}

// shares gives who has what, and the settings in effect. While a reload is under way the
// settings may still be those before.
func (i *Instance) shares() (fairshare.Shares, *guard.FairShare, bool) {
	settings := fairShareOf(i.config.Load())
	if settings == nil {
		return fairshare.Shares{}, nil, false
	}
	now, ok := i.guard.Shares()
	return now, settings, ok
}

// promShares is the same for metrics.
func (i *Instance) promShares() (prom.Shares, bool) {
	now, settings, ok := i.shares()
	if !ok {
		return prom.Shares{}, false
	}
	return prom.Shares{Shares: now, Passthrough: settings.Mode == guard.Shadow}, true
}

// fairShareStatus gives nil without fair share.
func (i *Instance) fairShareStatus() *FairShareStatus {
	now, settings, ok := i.shares()
	if !ok {
		return nil
	}
	s := &FairShareStatus{
		Mode: settings.Mode.String(), Capacity: now.Capacity, CycleSeconds: now.Length.Seconds(), Clients: len(now.Clients),
		LastAdmitted: now.LastAdmitted, LastCapacity: now.LastCapacity, Reasons: map[string]uint64{},
	}
	counted, _ := i.report.FairShare()
	var all RuleStatus
	all.Reasons = s.Reasons
	for _, n := range counted.Counts {
		all.add(n)
	}
	s.Allowed, s.Refused = all.Allowed, all.Refused
	return s
}

// tellFairShare logs what is shared when that begins, changes or ends. Passthrough has
// lines of its own: while it is on, nothing is protected.
func (i *Instance) tellFairShare(was, is *guard.FairShare) {
	log := i.options.Log
	if is == nil {
		if was != nil {
			log.Info("fair share has ended: the configuration has none any more")
		}
		return
	}
	if was == nil || !sameTerms(was, is) {
		log.Info("fair share", "capacity", is.Capacity, "cycle", is.Cycle.String(), "mode", is.Mode.String(),
			"division", is.Division.String(), "reclaim", is.Reclaim.String(), "client", is.Client.String())
	}
	passed, passes := was != nil && was.Mode == guard.Shadow, is.Mode == guard.Shadow
	switch {
	case passes && !passed:
		log.Info("passthrough is on: fair share refuses nothing, and counts what it would have refused")
	case passed && !passes:
		log.Info("passthrough is off: fair share refuses who is over his share")
	}
}

// sameTerms reports whether two fair shares have in common what a line of the log tells.
func sameTerms(a, b *guard.FairShare) bool {
	return a.Capacity == b.Capacity && a.Cycle == b.Cycle && a.Mode == b.Mode &&
		a.Division == b.Division && a.Reclaim == b.Reclaim && a.Client == b.Client
}
