package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/store/memory"
)

// Guard returns the metrics of a guard in a Go program: decisions, fallbacks, reloads,
// store and fair share. The guard must report to a report.Report, as open.Guard
// arranges. Guard panics for any other guard, because it would have no metrics.
func Guard(g *guard.Guard) prometheus.Collector {
	counted := report.Of(g)
	if counted == nil {
		//nolint:forbidigo // A programmer's fault at construction.
		panic("prom: the guard has no report.Report: make the guard with open.Guard, or set guard.Config.Observer")
	}
	c := Config{Report: counted, Guard: g, Shares: func() (Shares, bool) { return sharesOf(g, counted) }}
	if own, ok := g.Store().(interface{ Stats() memory.Stats }); ok {
		c.Store = own.Stats
	}
	if shared, ok := g.Store().(interface{ State() report.Shared }); ok {
		c.Shared = shared.State
	}
	collector := newCollector(c)
	collector.library = true
	return collector
}

func sharesOf(g *guard.Guard, counted *report.Report) (Shares, bool) {
	now, ok := g.Shares()
	rule, found := counted.Stage(guard.FairShareName)
	if !ok || !found {
		return Shares{}, false
	}
	return Shares{Shares: now, Shadow: rule.Rule.Mode == guard.Shadow}, true
}
