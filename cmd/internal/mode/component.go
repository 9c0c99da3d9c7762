// Package mode is the room of modes that operators set at run time, on top of the configuration: the calls of headgate ctl mode, and the
// end of these modes.
package mode

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

// retryAfter is the pause after an end of overrides that could not be applied.
const retryAfter = time.Second

// Component has the overrides of an instance. They end with the process.
type Component struct {
	component.Defaults

	host     *component.Host
	instance component.Configuration
	now      func() time.Time
	current  atomic.Pointer[overrides] // Writers hold the lock of instance.
	changed  chan struct{}             // wakes the goroutine that waits for the first end
	stop     chan struct{}
	stopping sync.Once
}

// New makes the component.
func New(host *component.Host, instance component.Configuration) *Component {
	c := &Component{host: host, instance: instance, now: time.Now, changed: make(chan struct{}, 1), stop: make(chan struct{})}
	c.current.Store(&overrides{})
	return c
}

// With adds the overrides in effect to a configuration. c may be nil.
func (c *Component) With(next *config.Config) *config.Config {
	if c == nil {
		return next
	}
	return next.WithModes(c.current.Load().config())
}

// Start implements component.Component.
func (c *Component) Start(context.Context) (func(), error) { return func() { go c.run() }, nil }

// Drain ends the wait for the end of overrides. The overrides stay.
func (c *Component) Drain(context.Context) error {
	c.stopping.Do(func() { close(c.stop) })
	return nil
}

// run ends overrides at their time.
func (c *Component) run() {
	for {
		var end <-chan time.Time
		timer := (*time.Timer)(nil)
		if first := c.current.Load().ends(); !first.IsZero() {
			timer = time.NewTimer(first.Sub(c.now()))
			end = timer.C
		}
		select {
		case <-c.stop:
		case <-c.changed:
		case <-end:
			if !c.expire() {
				c.pause()
			}
		}
		if timer != nil {
			timer.Stop()
		}
		select {
		case <-c.stop:
			return
		default:
		}
	}
}

// pause waits for retryAfter, or for the stop.
func (c *Component) pause() {
	timer := time.NewTimer(retryAfter)
	defer timer.Stop()
	select {
	case <-c.stop:
	case <-timer.C:
	}
}

// expire takes back the overrides that have ended. It reports false if the configuration without them could not be applied.
func (c *Component) expire() bool {
	c.instance.Lock()
	defer c.instance.Unlock()
	former := *c.current.Load()
	next := former.at(c.now())
	if len(next) == len(former) {
		return true
	}
	if err := c.put(next); err != nil {
		c.host.Log.Error("modes whose time has ended stay in effect: the configuration could not be applied without them", "error", err)
		return false
	}
	c.host.Log.Info("modes have ended", "before", former.text(nil), "after", next.text(nil))
	return true
}

// put applies overrides, or leaves the former ones. The caller holds the lock of instance.
func (c *Component) put(next overrides) error {
	former := c.current.Swap(&next)
	if err := c.instance.Again(); err != nil {
		c.current.Store(former)
		return err //nolint:wrapcheck // The caller says what failed.
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// Status implements component.Component.
func (c *Component) Status(s *admin.Status) { s.Modes = c.current.Load().list() }

// Metrics implements component.Component.
func (c *Component) Metrics(to *prom.Config) {
	to.Modes = func(yield func(rule, mode string, percent int, until time.Time)) {
		for name, one := range *c.current.Load() {
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
