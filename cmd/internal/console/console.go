// Package console is the room of what operators look at, and act on: the console in a browser, its calls of the admin listener, and the
// history that they read. Each part is a component in a folder below.
package console

import (
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/console/page"
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
	// Version identifies the build.
	Version string
}

// New makes the parts. An instance starts them after its rules.
func New(o Options) []component.Component {
	return []component.Component{
		page.New(o.Host, o.Config),
		trial.New(o.Host, o.Instance, o.Rules.Report()),
		why.New(o.Host.Log, why.Source{
			Name: func() string { return o.Host.Name(o.Config()) }, Config: o.Config, Guard: o.Rules.Guard(), Store: o.Rules.Store(),
		}),
	}
}
