// Package mode is the room of modes that operators set at run time, on top of the configuration: the calls of headgate ctl mode, and the
// end of these modes.
package mode

import (
	"context"
	"strconv"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/overlay"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// Component has the overrides of an instance, which end with the process, and those of a source, which all instances have.
type Component struct {
	component.Defaults

	host     *component.Host
	instance component.Configuration
	set      *overlay.Set[override]
	source   overlay.Source // nil without one
}

// New makes the component.
func New(host *component.Host, instance component.Configuration) *Component {
	return &Component{host: host, instance: instance, set: overlay.New(host, instance, overlay.Kind[override]{
		Name: "modes", Object: modesKey(),
		Over:   func(here, fleet map[string]override) map[string]override { return overrides(here).over(fleet) },
		Text:   func(all map[string]override) string { return overrides(all).text(nil) },
		Encode: func(all map[string]override) (string, error) { return overrides(all).encode() },
		Decode: func(text string) (map[string]override, error) { return decode(text) },
	})}
}

// current gives the overrides in effect.
func (c *Component) current() overrides { return c.set.Current() }

// Over implements component.Overlay.
func (c *Component) Over(next *config.Config) *config.Config {
	return next.WithModes(c.current().config())
}

// Start implements component.Component.
func (c *Component) Start(context.Context) (func(), error) { return func() { go c.set.Run() }, nil }

// Drain ends the wait for the end of overrides. The overrides stay.
func (c *Component) Drain(context.Context) error {
	c.set.Stop()
	return nil
}

// KeptBy implements overlay.Follower.
func (c *Component) KeptBy(s overlay.Source) { c.source = s }

// Follow implements overlay.Follower.
func (c *Component) Follow(change *source.Change) { c.set.Follow(change) }

// Status implements component.Component.
func (c *Component) Status(s *admin.Status) { s.Modes = c.current().list() }

// Metrics implements component.Component.
func (c *Component) Metrics(to *prom.Config) {
	to.Modes = func(yield func(rule, mode string, percent int, until time.Time)) {
		for name, one := range c.current() {
			share := one.Percent
			if share == 0 {
				share = 100
			}
			yield(name, one.Mode.String(), share, one.until)
		}
	}
}

// Calls implements component.Component.
func (c *Component) Calls() []calls.Call {
	return []calls.Call{
		{Pattern: "GET /api/v1/mode", Scope: config.ScopeRead, Handler: calls.OwnSite(c.list)},
		{Pattern: "POST /api/v1/mode", Scope: config.ScopeAdminister, Handler: calls.OwnSiteOrProgram(c.change)},
	}
}

func percent(n int) string { return strconv.Itoa(n) + "%" }
