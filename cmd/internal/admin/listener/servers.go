// Package listener serves the section admin: the calls of all components, health and metrics.
package listener

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
	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/httpserver"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

// Component is the component that serves admin.listen and admin.health.
type Component struct {
	component.Defaults

	o     Options
	gate  *access.Gate             // counts the refusals; each address of admin.listen has terms beside it
	hosts atomic.Pointer[[]string] // The current value of admin.hosts.
	name  atomic.Pointer[string]   // of the instance
	// config is the section admin in effect. The caller of Reload guards it.
	config  config.Admin
	metrics http.Handler
	files   *certs.Server // of admin.tls; nil without it

	mu    sync.Mutex            // guards sides
	sides [2]*httpserver.Server // in the order of adminListeners

	closing sync.WaitGroup  // former sides with requests in flight
	ended   context.Context //nolint:containedctx // because requests of former sides outlive the reload.
	end     context.CancelFunc
}

// Options are what a Component needs.
type Options struct {
	Host     *component.Host
	Config   *config.Config
	Instance Instance
	Access   *access.Component
	// Version and Commit identify the build.
	Version, Commit string
}

// Instance is what the listeners show of an instance.
type Instance interface {
	// Components have the metrics and the calls.
	Components() []component.Component
	// Ready returns the reason why the instance does not serve, or nil when it is ready.
	Ready() error
	// Asked reports whether an operator or a changed file has caused the reload. The caller of Reload guards it.
	Asked() bool
	// AdminMoved takes a section admin with another address or auth.
	AdminMoved(c *config.Admin)
	Status() admin.Status
	// ReloadNow reloads for the operator that by names. The error is component.ErrStopping after the stop; the status has other failures.
	ReloadNow(by string) (admin.ReloadStatus, error)
}

// adminListener is one of the listeners of the section admin.
type adminListener struct{ setting, at string }

// adminListeners lists the listeners of a section admin.
func adminListeners(c *config.Admin) [2]adminListener {
	return [2]adminListener{{"admin.listen", c.Listen}, {"admin.health", c.Health}}
}

// partCertificates is the part of a reload with the files of admin.tls.
const partCertificates = "admin certificates"

// New makes the component.
func New(o Options) (*Component, error) {
	c := &o.Config.Admin
	files, err := certs.ForListener(c.TLS, "admin.tls", o.Host.Log, o.Host.Reloaded(partCertificates))
	if err != nil {
		return nil, err
	}
	a := &Component{o: o, gate: o.Access.Gate("admin.listen", c.Auth, c.Listen).CountApart(), config: *c, files: files}
	a.hosts.Store(&c.Hosts)
	a.takeName(o.Config)
	a.ended, a.end = context.WithCancel(context.Background())
	return a, nil
}

func (a *Component) takeName(c *config.Config) {
	name := a.o.Host.Name(c)
	a.name.Store(&name)
}

// Files implements component.Reopener.
func (a *Component) Files() []component.File {
	if a.files == nil {
		return nil
	}
	return []component.File{{Name: partCertificates, Reopen: a.files.Reload, Kept: func(err error) {
		a.o.Host.Log.Error("certificates not reloaded: the previous certificates stay in use", "part", partCertificates, "error", err)
	}}}
}

// Start opens the listeners, with the metrics and the calls of all components.
func (a *Component) Start(ctx context.Context) (func(), error) {
	described := prom.Config{Version: a.o.Version, Commit: a.o.Commit, Go: runtime.Version()}
	for _, p := range a.o.Instance.Components() {
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
func (a *Component) open(ctx context.Context, n int, l adminListener, auth config.Auth) (*httpserver.Server, error) {
	s := &httpserver.Server{
		Setting: l.setting, Address: l.at,
		Connections: config.AdminConnections,
		Body:        httpserver.OperatorBody, Idle: httpserver.OperatorIdle, Longest: httpserver.OperatorLongest,
	}
	if n == 0 {
		s.Gate, s.Files = a.gate.Beside(auth, config.OnlyLocal(l.at)), a.files
		s.Handler = a.adminHandler(s.Gate, a.metrics)
	} else {
		s.Handler = a.healthHandler(a.metrics)
	}
	err := s.Open(ctx, &a.o.Host.Inherited, a.o.Host.Log)
	return s, err
}

// replace puts a side in place of another.
func (a *Component) replace(n int, s *httpserver.Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sides[n] = s
}

// Servers are those of admin.listen and of admin.health; nil for one that could not be opened.
func (a *Component) Servers() [2]*httpserver.Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sides
}

func (a *Component) begin() {
	for _, s := range a.Servers() {
		a.serve(s)
	}
}

func (a *Component) serve(s *httpserver.Server) {
	if s.Opened() {
		a.o.Host.Serve(s.Serve)
	}
}

// Reload prepares the listeners that move, the clients that they let in, and the host names that may read metrics.
func (a *Component) Reload(next *config.Config) (component.Change, error) {
	var moves [2]*httpserver.Server
	discard := func() {
		for _, s := range moves {
			if s != nil {
				_ = s.Close(a.ended) // The side has not served.
			}
		}
	}
	now, then := adminListeners(&a.config), adminListeners(&next.Admin)
	for n, l := range then {
		if l == now[n] || !a.o.Instance.Asked() {
			continue // A listener that could not move is not closed again for every change of objects.
		}
		s, err := a.open(a.ended, n, l, next.Admin.Auth)
		if errors.Is(err, syscall.EADDRINUSE) && a.inTheWay(l.at) {
			// Commit opens the address after its former side has left the port.
			s, err = &httpserver.Server{Setting: l.setting, Address: l.at}, nil
		}
		if err != nil {
			discard()
			return component.Change{}, err
		}
		moves[n] = s
	}
	return component.Change{Commit: func() {
		a.takeName(next)
		a.commit(&next.Admin, moves)
	}, Discard: discard}, nil
}

// inTheWay reports whether a listener of the section admin may have an address, or a wildcard of it.
func (a *Component) inTheWay(address string) bool {
	return slices.ContainsFunc(adminListenersOf(a.Servers()), func(at string) bool { return overlap(at, address) })
}

// commit moves the listeners. Requests in flight on a former address are finished there.
func (a *Component) commit(next *config.Admin, moves [2]*httpserver.Server) {
	was, at := a.config, adminListenersOf(a.Servers())
	a.config = *next
	for n, s := range moves {
		if s == nil {
			a.keep(n, &was)
		}
	}
	if s := a.Servers()[0]; moves[0] == nil && s != nil {
		s.Gate.Change(a.config.Auth, config.OnlyLocal(a.config.Listen))
	}
	a.hosts.Store(&next.Hosts)
	for n, s := range moves {
		if s != nil {
			a.leave(n, next.Auth)
		}
	}
	for n, s := range moves {
		if s != nil {
			a.o.Host.ReloadEnded(s.Setting, a.move(n, s, &was, at[n]))
		} else if a.o.Instance.Asked() {
			a.o.Host.ReloadEnded(adminListeners(&was)[n].setting, nil) // The file has the address that the listener has.
		}
	}
	if a.config.Auth != was.Auth || moves[0] != nil {
		a.o.Access.WarnOpen("admin.listen", a.config.Auth, a.config.Listen)
		a.o.Instance.AdminMoved(&a.config)
	}
}

// keep puts the former address of a listener back into the section in effect. If the address differs from the one of the
// configuration, the former auth stays as well: it may protect an address that more clients reach.
func (a *Component) keep(n int, was *config.Admin) {
	if n == 1 {
		a.config.Health = was.Health
	} else if a.config.Listen != was.Listen {
		a.config.Listen, a.config.Auth = was.Listen, was.Auth
	}
}

// leave ends listening on an address. Its requests in flight are finished within OperatorLongest, or until Drain. Its connections
// that are still open get no rights of the new address, and have to meet an auth of it.
func (a *Component) leave(n int, next config.Auth) {
	s := a.Servers()[n]
	if s == nil || !s.Opened() {
		return
	}
	if s.Gate != nil {
		s.Gate.Change(cmp.Or(next, s.Gate.Auth()), config.OnlyLocal(s.Address))
	}
	s.Unlisten()
	a.closing.Go(func() {
		ctx, cancel := context.WithTimeout(a.ended, httpserver.OperatorLongest)
		defer cancel()
		_ = s.Close(ctx) // A scrape that is cut off loses nothing.
	})
}

// move begins to serve a side. If its address cannot be opened, the listener returns to the address that it had.
func (a *Component) move(n int, s *httpserver.Server, was *config.Admin, had string) error {
	var err error
	log := a.o.Host.Log
	if s.Handler == nil {
		s, err = a.open(a.ended, n, adminListener{s.Setting, s.Address}, a.config.Auth)
	}
	if err != nil {
		log.Error("a listener has not moved: it stays on its former address, with its former auth", "listener", s.Setting, "error", err)
		s = a.stay(n, was, adminListener{s.Setting, had})
	} else {
		log.Info("a listener has moved", "listener", s.Setting, "address", s.At())
	}
	a.replace(n, s)
	a.serve(s)
	return err
}

// stay opens the former address of a listener again, with its former auth. The next reload of the file tries to move the listener
// again.
func (a *Component) stay(n int, was *config.Admin, had adminListener) *httpserver.Server {
	a.keep(n, was)
	s, err := a.open(a.ended, n, had, was.Auth)
	if err != nil {
		a.o.Host.Log.Error("a listener is closed: restart headgate", "listener", had.setting, "error", err)
	}
	return s
}

// Drain waits for a scrape in flight.
func (a *Component) Drain(ctx context.Context) error {
	// ctx may have expired while requests drained.
	ctx, cancel := component.Lastly(ctx, httpserver.OperatorDrain)
	defer cancel()
	for _, s := range a.Servers() {
		if s != nil {
			_ = s.Close(ctx) // A scrape that is cut off loses nothing.
		}
	}
	a.end()
	a.closing.Wait()
	return nil
}

// Address is that of admin.listen; "" when it does not listen.
func (a *Component) Address() string { return adminListenersOf(a.Servers())[0] }

// Status implements component.Component.
func (a *Component) Status(s *admin.Status) {
	all := adminListenersOf(a.Servers())
	s.Listen.Admin, s.Listen.Health = all[0], all[1]
}

// adminListenersOf gives the addresses of sides; "" for those that do not listen.
func adminListenersOf(sides [2]*httpserver.Server) []string {
	all := make([]string, len(sides))
	for n, s := range sides {
		if s != nil {
			all[n] = s.At()
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
