package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

// adminServers is the component that serves admin.listen and admin.health.
type adminServers struct {
	defaults

	instance *Instance
	gate     *access.Gate             // counts the refusals; each address of admin.listen has terms beside it
	hosts    atomic.Pointer[[]string] // The current value of admin.hosts.
	// config is the section admin in effect. The caller of Reload guards it.
	config  config.Admin
	metrics http.Handler

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
	a.metrics = prom.Handler(registry)
	for n, l := range adminListeners(&a.config) {
		s, err := a.open(ctx, n, l, a.config.Auth)
		if err != nil {
			return nil, err
		}
		a.replace(n, s)
	}
	return a.begin, nil
}

// open opens a listener. It serves after serve. auth is that of admin.listen.
func (a *adminServers) open(ctx context.Context, n int, l adminListener, auth config.Auth) (*side, error) {
	s := &side{
		setting: l.setting, at: l.at,
		connections: config.AdminConnections, body: adminBody, idle: adminIdle, longest: adminLongest,
	}
	if n == 0 {
		s.gate = a.gate.Beside(auth, config.OnlyLocal(l.at))
		s.handler = a.adminHandler(s.gate, a.metrics)
	} else {
		s.handler = a.healthHandler(a.metrics)
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
		if l == now[n] || !a.instance.asked {
			continue // A listener that could not move is not closed again for every change of objects.
		}
		s, err := a.open(a.ended, n, l, next.Admin.Auth)
		if errors.Is(err, syscall.EADDRINUSE) && a.inTheWay(l.at) {
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

// inTheWay reports whether a listener of the section admin may have an address, or a wildcard of it.
func (a *adminServers) inTheWay(address string) bool {
	return slices.ContainsFunc(adminListenersOf(a.current()), func(at string) bool { return overlap(at, address) })
}

// commit moves the listeners. Requests in flight on a former address are finished there.
func (a *adminServers) commit(next *config.Admin, moves [2]*side) {
	i, was, at := a.instance, a.config, adminListenersOf(a.current())
	a.config = *next
	for n, s := range moves {
		if s == nil {
			a.keep(n, &was)
		}
	}
	if s := a.current()[0]; moves[0] == nil && s != nil {
		s.gate.Change(a.config.Auth, config.OnlyLocal(a.config.Listen))
	}
	a.hosts.Store(&next.Hosts)
	for n, s := range moves {
		if s != nil {
			a.leave(n, next.Auth)
		}
	}
	for n, s := range moves {
		if s != nil {
			i.reloadEnded(s.setting, a.move(n, s, &was, at[n]))
		} else if i.asked {
			i.reloadEnded(adminListeners(&was)[n].setting, nil) // The file has the address that the listener has.
		}
	}
	if a.config.Auth != was.Auth || moves[0] != nil {
		i.access.warnOpen("admin.listen", a.config.Auth, a.config.Listen)
		if i.source != nil {
			i.source.warnOfListener(&a.config)
		}
	}
}

// keep puts the former address of a listener back into the section in effect. If the address differs from the one of the
// configuration, the former auth stays as well: it may protect an address that more clients reach.
func (a *adminServers) keep(n int, was *config.Admin) {
	if n == 1 {
		a.config.Health = was.Health
	} else if a.config.Listen != was.Listen {
		a.config.Listen, a.config.Auth = was.Listen, was.Auth
	}
}

// leave ends listening on an address. Its requests in flight are finished within adminLongest, or until Drain. Its connections
// that are still open get no rights of the new address, and have to meet an auth of it.
func (a *adminServers) leave(n int, next config.Auth) {
	s := a.current()[n]
	if s == nil || s.socket == nil {
		return
	}
	if s.gate != nil {
		s.gate.Change(cmp.Or(next, s.gate.Auth()), config.OnlyLocal(s.at))
	}
	s.unlisten()
	a.closing.Go(func() {
		ctx, cancel := context.WithTimeout(a.ended, adminLongest)
		defer cancel()
		_ = s.close(ctx) // A scrape that is cut off loses nothing.
	})
}

// move begins to serve a side. If its address cannot be opened, the listener returns to the address that it had.
func (a *adminServers) move(n int, s *side, was *config.Admin, had string) error {
	var err error
	log := a.instance.options.Log
	if s.handler == nil {
		s, err = a.open(a.ended, n, adminListener{s.setting, s.at}, a.config.Auth)
	}
	if err != nil {
		log.Error("a listener has not moved: it stays on its former address, with its former auth", "listener", s.setting, "error", err)
		s = a.stay(n, was, adminListener{s.setting, had})
	} else {
		log.Info("a listener has moved", "listener", s.setting, "address", s.address())
	}
	a.replace(n, s)
	a.serve(s)
	return err
}

// stay opens the former address of a listener again, with its former auth. The next reload of the file tries to move the listener
// again.
func (a *adminServers) stay(n int, was *config.Admin, had adminListener) *side {
	a.keep(n, was)
	s, err := a.open(a.ended, n, had, was.Auth)
	if err != nil {
		a.instance.options.Log.Error("a listener is closed: restart headgate", "listener", had.setting, "error", err)
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

// overlap reports whether a listener at one address may keep another listener from an address. Names may have any address.
func overlap(one, other string) bool {
	hostOne, portOne, err := net.SplitHostPort(one)
	hostOther, portOther, errOther := net.SplitHostPort(other)
	if err != nil || errOther != nil {
		return one != "" && one == other
	}
	a, err := netip.ParseAddr(hostOne)
	b, errOther := netip.ParseAddr(hostOther)
	wide := err != nil || errOther != nil || a.IsUnspecified() || b.IsUnspecified()
	return portOne == portOther && (wide || a.Unmap() == b.Unmap())
}
