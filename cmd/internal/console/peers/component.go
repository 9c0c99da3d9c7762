// Package peers is the part of the console that answers for a fleet: it asks the instances of admin.peers for what they do, and makes one
// document of their answers and the own one. Package merge has the arithmetic.
//
// Peers are asked with local=1, which no instance passes on, so that a list may have all instances, this one too.
package peers

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// Options are what the component needs.
type Options struct {
	Host *component.Host
	// Config returns the configuration in effect.
	Config func() *config.Config
	// Address is that of the own admin listener, and Started when the own instance has started.
	Address func() string
	Started time.Time
	// Lookup is for tests; nil means the system's resolver.
	Lookup func(ctx context.Context, name string) ([]string, error)
}

// Component answers calls of other components for a fleet.
type Component struct {
	component.Defaults

	o         Options
	directory directory
	fanned    chan struct{} // has maxFanned places

	ctx     context.Context //nolint:containedctx // because pollers outlive the request that starts them.
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex // guards pollers
	pollers map[pollKey]*poller
}

// New makes the component.
func New(o Options) *Component {
	c := &Component{o: o, pollers: map[pollKey]*poller{}, fanned: make(chan struct{}, maxFanned)}
	if c.directory.lookup = o.Lookup; o.Lookup == nil {
		c.directory.lookup = net.DefaultResolver.LookupHost
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// Drain ends the pollers.
func (c *Component) Drain(context.Context) error {
	c.end()
	c.running.Wait()
	c.directory.close()
	return nil
}

// Wrap implements calls.Wrapper.
func (c *Component) Wrap(call calls.Call) calls.Call {
	answer := map[string]func(http.ResponseWriter, *http.Request, http.HandlerFunc){
		"GET /api/v1/live": c.live, "GET /api/v1/history": c.history, "GET /api/v1/top": c.top, "GET /api/v1/bans": c.bans,
	}[call.Pattern]
	if answer == nil {
		return call
	}
	inner := call.Handler
	call.Handler = calls.OwnSite(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if local := query.Get(admin.Local); local == "1" || len(c.o.Config().Admin.Peers) == 0 {
			inner(w, r)
			return
		}
		answer(w, r, inner)
	})
	return call
}

// poller gives the poller of a key, which runs. It is nil if too many others run.
func (c *Component) poller(key pollKey) *poller {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pollers[key]; p != nil {
		return p
	}
	if len(c.pollers) >= maxPollers || c.ctx.Err() != nil {
		return nil
	}
	p := newPoller(key, &c.directory, c.o.Config, time.Now())
	c.pollers[key] = p
	c.running.Go(func() {
		p.run(c.ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pollers, key) // A reader that still has it reads its last answers once.
	})
	return p
}

// Pollers is the number of pollers that run.
func (c *Component) Pollers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pollers)
}
