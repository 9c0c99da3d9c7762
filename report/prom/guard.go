package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/store/memory"
)

// Guard gives the metrics of a guard in a Go program: decisions, fallbacks, reloads, its
// store and its fair share. The guard reports to a report.Report, as the one that
// open.Guard makes does; Guard panics for another, since it could show nothing.
func Guard(g *guard.Guard) prometheus.Collector {
	counted := report.Of(g)
	if counted == nil {
		//nolint:forbidigo // A programmer's fault at construction.
		panic("prom: the guard reports to no report.Report: make it with open.Guard, or set guard.Config.Observer")
	}
	c := Config{Report: counted, Shares: func() (Shares, bool) { return sharesOf(g, counted) }}
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
