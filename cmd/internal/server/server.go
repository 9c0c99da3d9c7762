// Package server is the room of headgate server: the component with its gRPC, HTTP and Redis listeners. The services that they serve
// are in cmd/internal/front, and those of a feature in its room.
package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/front/decisions"
	"github.com/headgate/headgate/cmd/internal/front/httpdecide"
	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/cmd/internal/heap/bounds"
	"github.com/headgate/headgate/cmd/internal/httpserver"
	"github.com/headgate/headgate/cmd/internal/lease"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/cmd/internal/rules"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

const (
	// rateLimitName is the name in the gRPC health service that follows /healthcheck. Clients of
	// envoyproxy/ratelimit query it.
	rateLimitName = "ratelimit"
	// reachedInterval is how often the server looks whether the store was reached.
	reachedInterval = 100 * time.Millisecond
	// httpDrain bounds the wait for HTTP requests in flight. Decisions are shorter. net/http also
	// waits for connections without a request, for up to 5 seconds.
	httpDrain = 2 * time.Second
)

// Parts of a reload: the certificates of a listener.
const (
	partGRPCCerts = "gRPC certificates"
	partHTTPCerts = "HTTP certificates"
	partRESPCerts = "RESP certificates"
)

// gates let the clients of the listeners in.
type gates struct{ grpc, http, resp *access.Gate }

// Options are what a Server needs.
type Options struct {
	Host   *component.Host
	Config *config.Config // has the section server
	// InEffect gives the configuration in effect, and Healthy reports whether objects and domains are loaded and no drain has begun.
	InEffect func() *config.Config
	Healthy  func() bool
	Rules    *rules.Rules // nil if the rules have faults: New then only reports those of the section server
	Access   *access.Component
	Leases   *lease.Component
	Limits   *envoy.Service
	Memory   *bounds.Process
	Version  string
}

// Server is the component that serves headgate server: a gRPC and an HTTP listener, and one of the
// Redis protocol.
type Server struct {
	component.Defaults

	o         Options
	guard     *guard.Guard
	limits    *envoy.Service
	decisions *decisions.Service
	decide    *httpdecide.Service
	leases    *lease.Granted // nil without the section
	grpc      *rpc.Server
	secured   *certs.Server    // The certificates of the gRPC listener; nil without TLS.
	socket    *listen.Listener // The gRPC listener; nil when it is off or not open yet.
	http      *httpserver.Server
	resp      *respListener
	gates     gates
	memory    atomic.Pointer[heap.Pressure] // nil until begin

	closedForMemory atomic.Uint64

	serves  atomic.Bool
	reached atomic.Bool // The store was reached once.
	away    atomic.Bool // The store makes no decisions now, with server.unhealthy_without_store.
	store   storeHealth // What watchStore knows.
	showing sync.Mutex  // Held while the gRPC health is set.
	stop    chan struct{}
	waiting sync.WaitGroup
}

// New makes the component; nil without rules.
func New(o Options) (*Server, error) {
	c := o.Config.Server
	d := &Server{o: o, limits: o.Limits, stop: make(chan struct{})}
	d.gates = gates{
		o.Access.Gate("server.grpc", c.GRPC.Auth, c.GRPC.Address), o.Access.Gate("server.http", c.HTTP.Auth, c.HTTP.Address),
		o.Access.Gate("server.resp", c.RESP.Auth, c.RESP.Address),
	}
	granting, leaseFault := o.Leases.Grant(o.Config)
	files, err := d.certificates(c.GRPC.TLS, "server.grpc.tls", partGRPCCerts)
	httpFiles, fault := d.certificates(c.HTTP.TLS, "server.http.tls", partHTTPCerts)
	redis, wrong := newRESPListener(d, d.gates.resp)
	err = errors.Join(err, fault, wrong, leaseFault)
	if err != nil || o.Rules == nil {
		return nil, err
	}
	d.guard = o.Rules.Guard()
	d.decisions = decisions.New(d.guard, decisions.Options{
		Shared: o.Rules.Store().Shared(), MaxAge: c.GRPC.MaxConnectionAge, MaxReceiptMemory: o.Config.ReceiptMemory(),
	})
	d.decide = httpdecide.New(d.guard, o.Host.Log)
	d.decide.Name(o.Host.NameToClients(o.Config))
	d.resp, d.leases = redis, granting
	d.secured, d.grpc = files, rpc.New(d.describe(&c.GRPC, files))
	d.grpc.SetServing(rateLimitName, false)
	d.http = &httpserver.Server{
		Setting: "server.http", Address: c.HTTP.Address, Handler: d.handler(),
		Connections: c.HTTP.MaxConnections, PerAddress: c.HTTP.MaxConnectionsPerAddress, Exempt: d.trusts,
		Admit: d.gates.http.Connect,
		Body:  c.HTTP.MaxBody, Idle: c.HTTP.IdleTimeout, Files: httpFiles, Pressed: d.pressed,
	}
	return d, nil
}

// trusts reports whether identity.trusted_proxies contains the address.
func (d *Server) trusts(peer netip.Addr) bool { return d.o.Rules.Trusts(peer) }

// certificates opens the files of a listener. It returns nil without files.
func (d *Server) certificates(t config.TLS, setting, part string) (*certs.Server, error) {
	return certs.ForListener(t, setting, d.o.Host.Log, d.o.Host.Reloaded(part))
}

// describe creates the configuration of the gRPC server.
func (d *Server) describe(c *config.ServerGRPC, files *certs.Server) rpc.Config {
	described := rpc.Config{
		MaxStreams: c.MaxStreams, MaxCallMemory: d.o.Config.CallMemory(), Trusts: d.trusts,
		HandshakeTimeout: c.HandshakeTimeout, Idle: c.IdleTimeout, WriteTimeout: c.WriteTimeout,
		Keepalive: c.Keepalive, KeepaliveTimeout: c.KeepaliveTimeout,
		MaxAge: c.MaxConnectionAge, MaxAgeGrace: c.MaxConnectionAgeGrace,
	}
	if files != nil {
		described.TLS = files.Config()
	}
	for _, register := range d.GRPCServices() {
		described.Services = append(described.Services, guarded(d.gates.grpc, register))
	}
	return described
}

// Routes serves the services over HTTP.
func (d *Server) Routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, s := range d.HTTPServices() {
		mux.Handle(s.Pattern, s.handler)
	}
	return mux
}

// handler is Routes with a short way for decisions: they are nearly all requests, and the search of
// http.ServeMux takes a seventh of the time of their handlers.
func (d *Server) handler() http.Handler {
	routes, decide := d.Routes(), guardedDecide(d.gates.http, d.decide)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == httpdecide.Pattern {
			decide.ServeHTTP(w, r)
			return
		}
		routes.ServeHTTP(w, r)
	})
}

// healthy reports whether the store was reached and still answers if it must, limits are loaded if they
// must be, and no drain has begun.
func (d *Server) healthy() bool {
	return d.reached.Load() && !d.away.Load() && d.o.Healthy()
}

// healthcheck answers in the form of envoyproxy/ratelimit.
func (d *Server) healthcheck(w http.ResponseWriter, _ *http.Request) {
	if !d.healthy() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "OK")
}

// Start opens the listeners.
func (d *Server) Start(ctx context.Context) (func(), error) {
	c := &d.o.Config.Server.GRPC
	if c.Address != "" {
		socket, err := listen.Open(ctx, listen.Config{
			Address: c.Address, Inherited: &d.o.Host.Inherited,
			MaxConnections: c.MaxConnections, PerAddress: c.MaxConnectionsPerAddress, Exempt: d.trusts,
			Admit: d.gates.grpc.Connect,
		})
		if err != nil {
			return nil, component.ListenError("server.grpc", err)
		}
		d.socket = socket
	}
	if err := d.http.Open(ctx, &d.o.Host.Inherited, d.o.Host.Log); err != nil {
		return nil, err
	}
	if err := d.resp.open(ctx); err != nil {
		return nil, err
	}
	return d.begin, nil
}

func (d *Server) begin() {
	d.watchMemory()
	if d.socket != nil {
		d.o.Host.Serve(func() error { return d.grpc.Serve(d.pressed(d.socket)) })
	}
	if d.http.Opened() {
		d.o.Host.Serve(d.http.Serve)
	}
	if d.resp.socket != nil {
		d.o.Host.Serve(func() error { return d.resp.serve(d.pressed(d.resp.socket)) })
	}
	d.leases.Start(d.o.Host)
	// Until the store has decided, with unhealthy_without_store.
	d.away.Store(d.o.Config.Server.UnhealthyWithoutStore)
	d.storeReached() // A store in memory is there at once: the line "serving" comes after the health.
	d.waiting.Go(d.awaitStore)
	d.serves.Store(true)
}

// storeReached turns the health to serving if the store was reached once.
func (d *Server) storeReached() bool {
	if !d.o.Rules.Reached() {
		return false
	}
	d.reached.Store(true)
	d.showHealth()
	return true
}

// awaitStore waits until the store was reached once.
func (d *Server) awaitStore() {
	again := time.NewTicker(reachedInterval)
	defer again.Stop()
	for !d.storeReached() {
		select {
		case <-d.stop:
			return
		case <-again.C:
		}
	}
	if d.o.Config.Server.UnhealthyWithoutStore {
		d.watchStore()
	}
}

// Reload takes the settings of the services. Rules and domains reload in their own component, and
// listeners need a restart.
func (d *Server) Reload(next *config.Config) (component.Change, error) {
	if next.Server == nil {
		return component.Change{}, errors.New("app: the new configuration has no server: write server: {grpc: \"127.0.0.1:8081\"}")
	}
	if err := errors.Join(Undecidable(next), lease.CheckElection(d.o.Config, next)); err != nil {
		return component.Change{}, err
	}
	return component.Change{Commit: func() {
		d.limits.Configure(next)
		d.decide.Name(d.o.Host.NameToClients(next))
		d.leases.Reload(next)
		d.rebound(next)
		d.showHealth()
	}}, nil
}

// Files implements component.Reopener.
func (d *Server) Files() []component.File {
	var all []component.File
	for part, files := range map[string]*certs.Server{partGRPCCerts: d.secured, partHTTPCerts: d.http.Files, partRESPCerts: d.resp.files} {
		if files != nil {
			all = append(all, component.File{Name: part, Reopen: files.Reload, Kept: func(err error) {
				d.o.Host.Log.Error("certificates not reloaded: the previous certificates stay in use", "part", part, "error", err)
			}})
		}
	}
	return all
}

// Drain refuses new calls and requests, and waits for those in flight.
func (d *Server) Drain(ctx context.Context) error {
	close(d.stop)
	if p := d.memory.Load(); p != nil {
		p.Stop()
	}
	d.waiting.Wait()
	var closing sync.WaitGroup
	var ofHTTP, ofRESP error
	closing.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, httpDrain)
		defer cancel()
		ofHTTP = d.http.Close(ctx)
	})
	closing.Go(func() { ofRESP = d.resp.drain(ctx) })
	d.decisions.Drain()
	d.leases.Drain()
	err := d.grpc.Drain(ctx)
	d.leases.Close()
	closing.Wait()
	if d.socket != nil {
		_ = d.socket.Close() // If the server served, it has closed the socket already.
	}
	return errors.Join(err, ofHTTP, ofRESP)
}

// Ready implements component.Component.
func (d *Server) Ready() error {
	if !d.serves.Load() {
		return errors.New("the server is starting")
	}
	if d.away.Load() {
		return errors.New("the store makes no decisions: see the log")
	}
	return nil
}

// Metrics implements component.Component.
func (d *Server) Metrics(c *prom.Config) {
	c.Server = d.state
	c.Collectors = append(c.Collectors, d.limits.Collectors()...)
}

func (d *Server) state() prom.Server {
	called := d.grpc.Stats()
	s := prom.Server{
		CallMemory: called.CallMemory, Evicted: called.Evicted, ClosedForMemory: d.closedForMemory.Load(), Decisions: d.asked(),
	}
	for _, l := range [...]struct {
		name  string
		open  bool
		stats func() listen.Stats
		files *certs.Server
	}{
		{"grpc", d.socket != nil, d.socket.Stats, d.secured},
		{"http", d.http.Opened(), d.http.Stats, d.http.Files},
		{"resp", d.resp.socket != nil, d.resp.socket.Stats, d.resp.files},
	} {
		if l.open {
			s.Listeners = append(s.Listeners, listenerState(l.name, l.stats(), l.files))
		}
	}
	return s
}

// asked gives the counters of headgate.v1 and of HTTP.
func (d *Server) asked() prom.ServerDecisions {
	g, h := d.decisions.Stats(), d.decide.Stats()
	return prom.ServerDecisions{
		Streams: g.Streams, Receipts: g.Receipts, GRPC: g.Messages, Posts: h.Posts, Gets: h.Gets,
		GRPCRequests: g.Requests, HTTPRequests: h.Requests, GRPCFaults: g.Faults, HTTPFaults: h.Faults,
		Returned: g.Returned, Unknown: g.Unknown, Dropped: g.Dropped, Untrusted: h.Untrusted,
	}
}

func listenerState(name string, s listen.Stats, files *certs.Server) prom.Listener {
	l := prom.Listener{
		Name: name, Connections: int64(s.Open), MaxConnections: int64(s.Limit), Accepted: s.Accepted, AcceptPauses: s.Pauses,
	}
	if files != nil {
		l.CertificateExpires = files.Expires()
	}
	return l
}

// Status implements component.Component.
func (d *Server) Status(s *admin.Status) {
	if d.socket != nil {
		s.Listen.GRPC = d.socket.Addr().String()
	}
	s.Listen.HTTP, s.Listen.RESP = d.http.At(), d.resp.address()
	s.Domains = append(s.Domains, envoy.DomainStatus(d.o.InEffect())...)
}

// Bounds returns the bounds of memory in force, while the server serves.
func (d *Server) Bounds() heap.Bounds { return d.memory.Load().Bounds() }

// Busy counts the HTTP requests in flight, and all commands of the Redis protocol.
func (d *Server) Busy() (requests int64, commands uint64) {
	return d.http.InFlight(), d.resp.server.Stats().Commands
}

// Limits is Envoy's rate limit service.
func (d *Server) Limits() *envoy.Service { return d.limits }
