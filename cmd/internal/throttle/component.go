// Package throttle is the room of the throttle in the daemon: its component with its metrics and its status.
package throttle

import (
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/throttle"
)

// Component is the component of the throttle. It stands behind the rules, whose guard has the stage.
type Component struct {
	component.Defaults

	config atomic.Pointer[config.Config] // The configuration in effect.
	stage  func() *throttler.Stage       // nil when the throttle was never on
}

// New makes the component. stage gives the stage of the guard.
func New(c *config.Config, stage func() *throttler.Stage) *Component {
	made := &Component{stage: stage}
	made.config.Store(c)
	return made
}

// Reload implements component.Component. The guard takes the settings with the rules.
func (c *Component) Reload(next *config.Config) (component.Change, error) {
	return component.Change{Commit: func() { c.config.Store(next) }}, nil
}

// Metrics implements component.Component.
func (c *Component) Metrics(to *prom.Config) { to.Throttle = c.metrics }

// Status implements component.Component.
func (c *Component) Status(s *admin.Status) { s.Throttle = c.status() }

// metrics returns the state of the throttle, and false when it is off.
func (c *Component) metrics() (prom.Throttle, bool) {
	settings, stage := c.config.Load().Throttle, c.stage()
	if settings == nil || settings.Mode == guard.Off || stage == nil {
		return prom.Throttle{}, false
	}
	t := prom.ThrottleOf(stage)
	t.Config = *settings // The stage may be of a reload that another part has refused.
	return t, true
}

// status returns nil when the throttle is off.
func (c *Component) status() *admin.ThrottleStatus {
	t, ok := c.metrics()
	if !ok {
		return nil
	}
	s := &admin.ThrottleStatus{
		Mode: t.Config.Mode.String(), Concurrency: t.Limit, AdvisedConcurrency: t.Found, CPUInFlightSeconds: t.Config.CPUInFlight.Seconds(),
		Hung: t.Hung, InFlight: t.InFlight, WorkInFlightSeconds: t.CPU.Seconds(),
		QueuedWorkSeconds: t.QueuedWork.Seconds(), DrainRate: t.Rate,
		Tenants: t.Tenants, Waited: t.Waited, WaitSeconds: t.WaitTime.Seconds(),
		PredictedWorkSeconds: t.Predicted.Seconds(), WorkSeconds: t.Measured.Seconds(),
		Queued: map[string]int{}, Refused: map[string]uint64{}, RefusedByClass: map[string]uint64{},
	}
	for i, n := range t.Queued {
		s.Queued[throttle.Class(i).String()] = n
	}
	for i, classes := range t.Refused {
		for class, n := range classes {
			s.Refused[(headgate.ThrottleFull + headgate.Reason(i)).String()] += n
			s.RefusedByClass[throttle.Class(class).String()] += n
		}
	}
	return s
}
