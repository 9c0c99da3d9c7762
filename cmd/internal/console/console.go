// Package console is the room of what operators look at, and act on: the console in a browser, its calls of the admin listener, and the
// history that they read. Each part is a component in a folder below.
package console

import (
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/console/acted"
	"github.com/headgate/headgate/cmd/internal/console/history"
	"github.com/headgate/headgate/cmd/internal/console/keylimit"
	"github.com/headgate/headgate/cmd/internal/console/page"
	"github.com/headgate/headgate/cmd/internal/console/peers"
	"github.com/headgate/headgate/cmd/internal/console/refusals"
	"github.com/headgate/headgate/cmd/internal/console/trial"
	"github.com/headgate/headgate/cmd/internal/console/why"
	"github.com/headgate/headgate/cmd/internal/rules"
	"github.com/headgate/headgate/internal/config"
)

// Options are what the parts need.
type Options struct {
	Host *component.Host
	// Config returns the configuration in effect.
	Config func() *config.Config
	// Instance changes the configuration.
	Instance component.Configuration
	Rules    *rules.Rules
	// Components are those of the instance.
	Components func() []component.Component
	// Waiting lists the settings that take effect at a restart, and Failures the parts whose last reload failed.
	Waiting  func() []string
	Failures func() []admin.ReloadFailure
	// Version identifies the build, and Started is when the instance started.
	Version string
	Started time.Time
	// Server says that the instance answers decisions and forwards nothing.
	Server bool
	// Admin is the address of the admin listener.
	Admin func() string
}

// New makes the parts. An instance starts them after its rules.
func New(o Options) []component.Component {
	return []component.Component{
		acted.New(o.Host),
		keylimit.New(o.Host, o.Instance, o.Rules.Report()), // before the trials, which have the overrides of their rules
		page.New(o.Host, o.Config),
		trial.New(o.Host, o.Instance, o.Rules.Report()),
		refusals.New(o.Host.Log, func() string { return o.Host.Name(o.Config()) }, o.Config, o.Rules.Report()),
		why.New(o.Host.Log, why.Source{
			Name: func() string { return o.Host.Name(o.Config()) }, Config: o.Config, Guard: o.Rules.Guard(), Store: o.Rules.Store(),
		}),
		history.New(history.Options{
			Host: o.Host, Config: o.Config, Series: o.Config().Admin.HistorySeries, Instance: o.Instance, Components: o.Components,
			Waiting: o.Waiting, Failures: o.Failures, Version: o.Version, Started: o.Started,
			Sources: history.Sources{
				Report: o.Rules.Report(), Shares: o.Rules.Guard().Shares, Throttle: o.Rules.Store().Throttle, Store: o.Rules.Store().State,
				Server: o.Server,
			},
		}),
		peers.New(peers.Options{Host: o.Host, Config: o.Config, Address: o.Admin, Started: o.Started}),
	}
}
