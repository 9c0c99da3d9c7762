// Package keylimit is the room of limits that single keys have at run time: a customer is raised for an hour. They are overrides on top of
// those of the configuration, and end by themselves.
package keylimit

import (
	"context"
	"maps"
	"slices"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/overlay"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// Component has the limits of an instance, which end with the process, and those of a source, which all instances have.
type Component struct {
	component.Defaults

	host     *component.Host
	instance component.Configuration
	report   *report.Report // names keys in the log
	set      *overlay.Set[limited]
	source   overlay.Source // nil without one
}

// New makes the component. counted names keys as log.keys says.
func New(host *component.Host, instance component.Configuration, counted *report.Report) *Component {
	return &Component{host: host, instance: instance, report: counted, set: overlay.New(host, instance, overlay.Kind[limited]{
		Name: "limits of keys", Object: objectKey(), Over: over, Text: text, Encode: encode, Decode: decode,
	})}
}

// Over implements component.Overlay.
func (c *Component) Over(next *config.Config) *config.Config {
	return next.WithKeyLimits(limitsOf(c.set.Current()))
}

// limitsOf gives limits for a configuration, in one order.
func limitsOf(all map[string]limited) []config.KeyLimit {
	limits := make([]config.KeyLimit, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		limits = append(limits, all[name].config())
	}
	return limits
}

// KeptBy implements overlay.Follower.
func (c *Component) KeptBy(s overlay.Source) { c.source = s }

// Follow implements overlay.Follower.
func (c *Component) Follow(change *source.Change) { c.set.Follow(change) }

// Start implements component.Component.
func (c *Component) Start(context.Context) (func(), error) { return func() { go c.set.Run() }, nil }

// Drain implements component.Component.
func (c *Component) Drain(context.Context) error {
	c.set.Stop()
	return nil
}

// mostInStatus bounds the limits in a status.
const mostInStatus = 50

// Status implements component.Component.
func (c *Component) Status(s *admin.Status) {
	all := list(c.set.Current(), false)
	s.KeyLimits, s.KeyLimitsTotal = all[:min(len(all), mostInStatus)], len(all)
}

// Calls implements component.Component.
func (c *Component) Calls() []calls.Call {
	return []calls.Call{
		{
			Pattern: "GET /api/v1/key/limits", Scope: config.ScopeAdminister,
			Handler: calls.OwnSiteOrProgram(calls.Parameters(c.host.Log, c.answerList, "rule")),
		},
		{
			Pattern: "POST /api/v1/key/limit", Scope: config.ScopeAdminister,
			Handler: calls.OwnSiteOrProgram(calls.Parameters(c.host.Log, c.answerChange)),
		},
	}
}
