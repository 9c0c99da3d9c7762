// Package history is the part of the console that samples the counters of the instance each second: the history of the last day, the
// rates of the last seconds, since when rules refuse, and the calls that show them. Package ring keeps the values.
package history

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// Options are what the component needs.
type Options struct {
	Host    *component.Host
	Sources Sources
	// Config returns the configuration in effect. Series is the number of series of the history.
	Config func() *config.Config
	Series int
	// Instance knows whether the instance stops. Components are those of the instance.
	Instance   component.Configuration
	Components func() []component.Component
	// Waiting lists the settings that take effect at a restart, and Failures the parts whose last reload failed.
	Waiting  func() []string
	Failures func() []admin.ReloadFailure
	// Version identifies the build, and Started is when the instance started.
	Version string
	Started time.Time
}

// Component samples an instance, and answers /api/v1/live and /api/v1/history.
type Component struct {
	component.Defaults

	o Options

	mu      sync.Mutex // guards sampler
	sampler *sampler

	answering sync.Mutex // guards answers, digester, and the work for answers
	answers   answers
	digester  config.Digester

	stop    context.CancelFunc // nil before Start
	stopped sync.WaitGroup
}

// New makes the component.
func New(o Options) *Component {
	return &Component{o: o, sampler: newSampler(o.Sources, o.Series)}
}

// Start begins to sample when the instance serves.
func (c *Component) Start(context.Context) (begin func(), err error) {
	return func() {
		ctx, cancel := context.WithCancel(context.Background())
		c.stop = cancel
		c.stopped.Go(func() { c.run(ctx) })
	}, nil
}

// run samples at each second of the wall clock until ctx ends.
func (c *Component) run(ctx context.Context) {
	timer := time.NewTimer(untilNext(time.Now()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		c.tick(now)
		timer.Reset(untilNext(now))
	}
}

// untilNext is the time until the next second of the wall clock, and a little more, because a timer may be early for another clock.
func untilNext(now time.Time) time.Duration {
	const late = 5 * time.Millisecond
	return now.Truncate(time.Second).Add(time.Second + late).Sub(now)
}

func (c *Component) tick(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sampler.tick(now, c.o.Config())
}

// Drain ends the sampling.
func (c *Component) Drain(context.Context) error {
	if c.stop != nil {
		c.stop()
		c.stopped.Wait()
	}
	return nil
}

// Calls implements component.Component.
func (c *Component) Calls() []calls.Call {
	log := c.o.Host.Log
	return []calls.Call{
		{Pattern: "GET /api/v1/live", Scope: config.ScopeRead, Handler: calls.OwnSite(
			calls.Parameters(log, c.live, "sort", "limit", "local"))},
		{Pattern: "GET /api/v1/history", Scope: config.ScopeRead, Handler: calls.OwnSite(
			calls.RepeatedParameter(log, c.history, "series", "tier", "since", "local"))},
	}
}

// Shower is a component that adds to the answer of /api/v1/live, at most once a second.
type Shower interface{ Show(l *admin.Live) }
