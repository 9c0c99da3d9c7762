// Package trial is the room of trials: rules in shadow with other limits than the rule that they stand beside, for a time. They show on
// the traffic of now what other limits would refuse.
package trial

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/overlay"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config"
)

// trial is one trial. Its name is the key in the set.
type trial struct {
	rule, limits string // limits as they were written, with commas
	burst        int64
	since, until time.Time
	by, reason   string
}

// Ends implements overlay.Entry.
func (t trial) Ends() time.Time { return t.until }

func (t trial) newLimits() config.NewLimits {
	return config.NewLimits{Limits: strings.Split(t.limits, ","), Burst: t.burst}
}

// Component has the trials of an instance. They survive a reload, and end with the process.
type Component struct {
	component.Defaults

	host     *component.Host
	instance component.Configuration
	report   *report.Report
	set      *overlay.Set[trial]

	mu sync.Mutex
	// began has the counts of the rules when their trials began, by the names of the trials. mu guards it.
	began map[string]counts
}

// New makes the component. counted has the decisions of the rules.
func New(host *component.Host, instance component.Configuration, counted *report.Report) *Component {
	return &Component{
		host: host, instance: instance, report: counted, began: map[string]counts{},
		set: overlay.New(host, instance, overlay.Kind[trial]{
			Name: "trials",
			Over: func(here, _ map[string]trial) map[string]trial { return here },
			Text: text,
		}),
	}
}

// text describes trials for the log.
func text(all map[string]trial) string {
	if len(all) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, name+" until "+all[name].until.UTC().Format(time.RFC3339))
	}
	return strings.Join(parts, ", ")
}

// Over implements component.Overlay.
func (c *Component) Over(next *config.Config) *config.Config {
	all := c.set.Current()
	var trials []config.Trial
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one := all[name]
		trials = append(trials, config.Trial{Name: name, Rule: one.rule, NewLimits: one.newLimits()})
	}
	return next.WithTrials(trials)
}

// Start implements component.Component.
func (c *Component) Start(context.Context) (func(), error) { return func() { go c.set.Run() }, nil }

// Drain implements component.Component.
func (c *Component) Drain(context.Context) error {
	c.set.Stop()
	return nil
}

// Status implements component.Component.
func (c *Component) Status(s *admin.Status) { s.Trials = c.list(c.set.Now()) }

// Calls implements component.Component.
func (c *Component) Calls() []calls.Call {
	log := c.host.Log
	return []calls.Call{
		{Pattern: "GET /api/v1/trials", Scope: config.ScopeRead, Handler: calls.OwnSite(calls.Parameters(log, c.answerList))},
		{
			Pattern: "POST /api/v1/trials", Scope: config.ScopeAdminister,
			Handler: calls.OwnSiteOrProgram(calls.Parameters(log, c.answerStart)),
		},
		{
			Pattern: "DELETE /api/v1/trials/{name}", Scope: config.ScopeAdminister,
			Handler: calls.OwnSiteOrProgram(calls.Parameters(log, c.answerStop, "reason", "dry_run")),
		},
	}
}
