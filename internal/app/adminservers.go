package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/access"
	"github.com/headgate/headgate/internal/admin"
	"github.com/headgate/headgate/report/prom"
)

// adminServers is the component that serves admin.listen and admin.health.
type adminServers struct {
	defaults

	instance *Instance
	gate     *access.Gate
	hosts    atomic.Pointer[[]string] // The current value of admin.hosts.
	// config is the section admin in effect. The caller of Reload guards it.
	config   config.Admin
	handlers [2]http.Handler // of the listeners in the order of adminListeners

	mu    sync.Mutex // guards sides
	sides [2]*side   // in the order of adminListeners

	closing sync.WaitGroup  // former sides with requests in flight
	ended   context.Context //nolint:containedctx // because requests of former sides outlive the reload.
	end     context.CancelFunc
}

// adminListener is one of the listeners of the section admin.
type adminListener struct{ setting, at string }

// adminListeners lists the listeners of a section admin.
func adminListeners(c *config.Admin) [2]adminListener {
	return [2]adminListener{{"admin.listen", c.Listen}, {"admin.health", c.Health}}
}

func newAdmin(i *Instance) *adminServers {
	c := &i.options.Config.Admin
	a := &adminServers{instance: i, gate: i.access.gate("admin.listen", c.Auth, c.Listen).CountApart(), config: *c}
	a.hosts.Store(&c.Hosts)
	a.ended, a.end = context.WithCancel(context.Background())
	return a
}

func (a *adminServers) Start(ctx context.Context) (func(), error) {
	i := a.instance
	described := prom.Config{Version: i.options.Version, Commit: i.options.Commit, Go: runtime.Version()}
	for _, p := range i.components {
		p.Metrics(&described)
	}
	registry, err := prom.NewRegistry(described)
	if err != nil {
		return nil, fmt.Errorf("app: metrics: %w", err)
	}
	metrics := prom.Handler(registry)
	a.handlers = [2]http.Handler{a.adminHandler(metrics), a.healthHandler(metrics)}
	for n, l := range adminListeners(&a.config) {
		s, err := a.open(ctx, n, l)
		if err != nil {
			return nil, err
		}
		a.replace(n, s)
	}
	return a.begin, nil
}

// open opens a listener. It serves after serve.
func (a *adminServers) open(ctx context.Context, n int, l adminListener) (*side, error) {
	s := &side{
		setting: l.setting, at: l.at, handler: a.handlers[n],
		connections: config.AdminConnections, body: adminBody, idle: adminIdle, longest: adminLongest,
	}
	err := s.open(ctx, &a.instance.inherited, a.instance.options.Log)
	return s, err
}

// replace puts a side in place of another.
func (a *adminServers) replace(n int, s *side) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sides[n] = s
}

func (a *adminServers) current() [2]*side {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sides
}

func (a *adminServers) begin() {
	for _, s := range a.current() {
		a.serve(s)
	}
}

func (a *adminServers) serve(s *side) {
	if s.socket != nil {
		a.instance.serve(s.serve)
	}
}

// Reload prepares the listeners that move, the clients that they let in, and the host names that may read metrics.
func (a *adminServers) Reload(next *config.Config) (Change, error) {
	var moves [2]*side
	discard := func() {
		for _, s := range moves {
			if s != nil {
				_ = s.close(a.ended) // The side has not served.
			}
		}
	}
	now, then := adminListeners(&a.config), adminListeners(&next.Admin)
	for n, l := range then {
		if l == now[n] {
			continue
		}
		s, err := a.open(a.ended, n, l)
		if errors.Is(err, syscall.EADDRINUSE) && a.ownPort(l.at) {
			s, err = &side{setting: l.setting, at: l.at}, nil // Commit opens the address after its former side has left the port.
		}
		if err != nil {
			discard()
			return Change{}, err
		}
		moves[n] = s
	}
	return Change{Commit: func() { a.commit(&next.Admin, moves) }, Discard: discard}, nil
}

// ownPort reports whether a listener of the section admin has the port of an address.
func (a *adminServers) ownPort(address string) bool {
	return slices.ContainsFunc(adminListenersOf(a.current()), func(at string) bool { return portOf(at) == portOf(address) })
}

// commit moves the listeners. Requests in flight on a former address are finished there.
func (a *adminServers) commit(next *config.Admin, moves [2]*side) {
	i := a.instance
	if next.Auth != a.config.Auth || next.Listen != a.config.Listen {
		a.gate.Change(next.Auth, config.OnlyLocal(next.Listen))
		i.access.warnOpen("admin.listen", next.Auth, next.Listen)
		if i.source != nil {
			i.source.warnOfListener(next)
		}
	}
	a.hosts.Store(&next.Hosts)
	former, at := adminListeners(&a.config), adminListenersOf(a.current())
	a.config = *next
	for n, s := range moves {
		if s != nil {
			a.leave(n)
		}
	}
	for n, s := range moves {
		var err error
		if s != nil {
			err = a.move(n, s, former[n], at[n])
		}
		i.reloadEnded(former[n].setting, err)
	}
}

// leave ends listening on an address. Its requests in flight are finished within adminLongest, or until Drain.
func (a *adminServers) leave(n int) {
	s := a.current()[n]
	if s == nil || s.socket == nil {
		return
	}
	s.unlisten()
	a.closing.Go(func() {
		ctx, cancel := context.WithTimeout(a.ended, adminLongest)
		defer cancel()
		_ = s.close(ctx) // A scrape that is cut off loses nothing.
	})
}

// move begins to serve a side. If its address cannot be opened, the listener returns to the address that it had.
func (a *adminServers) move(n int, s *side, former adminListener, had string) error {
	var err error
	log := a.instance.options.Log
	if s.handler == nil {
		s, err = a.open(a.ended, n, adminListener{s.setting, s.at})
	}
	if err != nil {
		log.Error("a listener has not moved: it stays on its former address", "listener", former.setting, "error", err)
		s = a.stay(n, former, had)
	} else {
		log.Info("a listener has moved", "listener", s.setting, "address", s.address())
	}
	a.replace(n, s)
	a.serve(s)
	return err
}

// stay opens the former address of a listener again. The next reload tries to move the listener again.
func (a *adminServers) stay(n int, former adminListener, had string) *side {
	if n == 0 {
		a.config.Listen = former.at
		a.gate.Change(a.config.Auth, config.OnlyLocal(former.at))
	} else {
		a.config.Health = former.at
	}
	s, err := a.open(a.ended, n, adminListener{former.setting, had})
	if err != nil {
		a.instance.options.Log.Error("a listener is closed: restart headgate", "listener", former.setting, "error", err)
	}
	return s
}

// Drain waits for a scrape in flight.
func (a *adminServers) Drain(ctx context.Context) error {
	// ctx may have expired while requests drained.
	ctx, cancel := lastly(ctx, adminDrain)
	defer cancel()
	for _, s := range a.current() {
		if s != nil {
			_ = s.close(ctx) // A scrape that is cut off loses nothing.
		}
	}
	a.end()
	a.closing.Wait()
	return nil
}

// Status implements Component.
func (a *adminServers) Status(s *admin.Status) {
	all := adminListenersOf(a.current())
	s.Listen.Admin, s.Listen.Health = all[0], all[1]
}

// adminListenersOf gives the addresses of sides; "" for those that do not listen.
func adminListenersOf(sides [2]*side) []string {
	all := make([]string, len(sides))
	for n, s := range sides {
		if s != nil {
			all[n] = s.address()
		}
	}
	return all
}

// portOf gives the port of an address, or "".
func portOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return port
}
