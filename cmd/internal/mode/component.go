// Package mode is the room of modes that operators set at run time, on top of the configuration: the calls of headgate ctl mode, and the
// end of these modes.
package mode

import (
	"context"
	"errors"
	"maps"
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

// Component has the overrides of an instance, which end with the process, and those of a source, which all instances have.
type Component struct {
	component.Defaults

	// Source keeps the overrides of all instances; nil without one. The wiring sets it.
	Source Source

	host     *component.Host
	instance component.Configuration
	now      func() time.Time
	current  atomic.Pointer[overrides] // Those in effect. Writers hold the lock of instance.
	// here are the overrides of this instance, and fleet those of the source, with its text and revision. The lock of instance guards them.
	here, fleet overrides
	text        string
	revision    int64         // of the object that the instance has followed; 0 without one
	failed      atomic.Bool   // The overrides in effect are not here over fleet: the configuration could not be applied.
	changed     chan struct{} // wakes the goroutine that waits for the first end
	stop        chan struct{}
	stopping    sync.Once
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

// run ends overrides at their time, and tries again to apply those that could not be applied.
func (c *Component) run() {
	for {
		var end <-chan time.Time
		timer := (*time.Timer)(nil)
		first := c.current.Load().ends()
		if c.failed.Load() {
			first = c.now().Add(retryAfter)
		}
		if !first.IsZero() {
			timer = time.NewTimer(first.Sub(c.now()))
			end = timer.C
		}
		select {
		case <-c.stop:
		case <-c.changed:
		case <-end:
			c.expire()
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

// expire takes back the overrides that have ended.
func (c *Component) expire() {
	c.instance.Lock()
	defer c.instance.Unlock()
	former := *c.current.Load()
	if c.renew() && !maps.Equal(former, *c.current.Load()) {
		c.host.Log.Info("modes have ended", "before", former.text(nil), "after", c.current.Load().text(nil))
	}
}

// renew applies the overrides that should be in effect now. After a failure, run tries again. The caller holds the lock of instance.
func (c *Component) renew() bool {
	now := c.now()
	c.here = c.here.at(now)
	next := c.here.over(c.fleet.at(now))
	if maps.Equal(next, *c.current.Load()) {
		c.failed.Store(false)
		return true
	}
	err := c.put(next)
	if err != nil && !errors.Is(err, component.ErrStopping) && !c.failed.Swap(true) {
		c.host.Log.Error("the modes stay as they were: the configuration could not be applied with other ones", "error", err)
	}
	if err == nil {
		c.failed.Store(false)
	}
	c.wake()
	return err == nil
}

// put applies overrides, or leaves the former ones. The caller holds the lock of instance.
func (c *Component) put(next overrides) error {
	former := c.current.Swap(&next)
	if err := c.instance.Again(); err != nil {
		c.current.Store(former)
		return err //nolint:wrapcheck // The caller says what failed.
	}
	c.wake()
	return nil
}

// wake has run look at the ends again.
func (c *Component) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
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
