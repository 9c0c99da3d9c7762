package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/front/decisions"
	"github.com/headgate/headgate/cmd/internal/front/httpdecide"
	"github.com/headgate/headgate/cmd/internal/front/rls"
	"github.com/headgate/headgate/cmd/internal/heap"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/cmd/internal/statsd"
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

// gates let the clients of the listeners in.
type gates struct{ grpc, http, resp *access.Gate }

// decisionServer is the component that serves headgate server: a gRPC and an HTTP listener, and one of the
// Redis protocol.
type decisionServer struct {
	instance  *Instance
	limits    *rls.Service
	decisions *decisions.Service
	decide    *httpdecide.Service
	leases    *leases // nil without the section
	mapping   *statsd.Mapping
	times     *statsd.Timer // of calls of limits
	grpc      *rpc.Server
	secured   *certs.Server    // The certificates of the gRPC listener; nil without TLS.
	socket    *listen.Listener // The gRPC listener; nil when it is off or not open yet.
	http      *side
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

func newDecisionServer(i *Instance) (*decisionServer, error) {
	c := i.options.Config.Server
	d := &decisionServer{instance: i, stop: make(chan struct{})}
	d.gates = gates{
		i.access.gate("server.grpc", c.GRPC.Auth, c.GRPC.Address), i.access.gate("server.http", c.HTTP.Auth, c.HTTP.Address),
		i.access.gate("server.resp", c.RESP.Auth, c.RESP.Address),
	}
	mapping, err := statsd.NewMapping("")
	if err != nil {
		return nil, err
	}
	if o := i.options.Outlets; o != nil && o.Mapping != nil {
		mapping = o.Mapping
	}
	d.mapping, d.times = mapping, mapping.NewTimer("ratelimit_server.ShouldRateLimit.response_time")
	if o := i.options.Outlets; o != nil && o.Milliseconds {
		d.times.InMilliseconds()
	}
	if i.rules != nil {
		d.limits = rls.New(i.rules.guard, d.rateLimitOptions(i.options.Config), c.RateLimitService.MaxMetricValues)
		d.decisions = decisions.New(i.rules.guard, decisions.Options{
			Shared: i.rules.store.Shared(), MaxAge: c.GRPC.MaxConnectionAge, MaxReceiptMemory: i.options.Config.ReceiptMemory(),
		})
		d.decide = httpdecide.New(i.rules.guard, i.options.Log)
	}
	granting, leaseFault := newLeases(i)
	files, err := i.listenerCertificates(c.GRPC.TLS, "server.grpc.tls", partGRPCCerts)
	httpFiles, fault := i.listenerCertificates(c.HTTP.TLS, "server.http.tls", partHTTPCerts)
	redis, wrong := newRESPListener(i, d.gates.resp)
	if err != nil || fault != nil || wrong != nil || leaseFault != nil {
		return nil, errors.Join(err, fault, wrong, leaseFault)
	}
	d.resp, d.leases, i.leases = redis, granting, granting
	d.secured, d.grpc = files, rpc.New(d.describe(&c.GRPC, files))
	d.grpc.SetServing(rateLimitName, false)
	d.http = &side{
		setting: "server.http", at: c.HTTP.Address, handler: d.handler(),
		connections: c.HTTP.MaxConnections, perAddress: c.HTTP.MaxConnectionsPerAddress, exempt: i.trusts,
		admit: d.gates.http.Connect,
		body:  c.HTTP.MaxBody, idle: c.HTTP.IdleTimeout, files: httpFiles, pressed: d.pressed,
	}
	return d, nil
}

// describe creates the configuration of the gRPC server.
func (d *decisionServer) describe(c *config.ServerGRPC, files *certs.Server) rpc.Config {
	described := rpc.Config{
		MaxStreams: c.MaxStreams, MaxCallMemory: d.instance.options.Config.CallMemory(), Trusts: d.instance.trusts,
		HandshakeTimeout: c.HandshakeTimeout, Idle: c.IdleTimeout, WriteTimeout: c.WriteTimeout,
		Keepalive: c.Keepalive, KeepaliveTimeout: c.KeepaliveTimeout,
		MaxAge: c.MaxConnectionAge, MaxAgeGrace: c.MaxConnectionAgeGrace,
	}
	if files != nil {
		described.TLS = files.Config()
	}
	for _, register := range d.grpcServices() {
		described.Services = append(described.Services, guarded(d.gates.grpc, register))
	}
	return described
}

// routes serves the services over HTTP.
func (d *decisionServer) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, s := range d.httpServices() {
		mux.Handle(s.pattern, s.handler)
	}
	return mux
}

// handler is routes with a short way for decisions: they are nearly all requests, and the search of
// http.ServeMux takes a seventh of the time of their handlers.
func (d *decisionServer) handler() http.Handler {
	routes, decide := d.routes(), guardedDecide(d.gates.http, d.decide)
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
func (d *decisionServer) healthy() bool {
	i := d.instance
	o := &i.options
	return d.reached.Load() && !d.away.Load() && !i.draining.Load() && i.hasObjects() &&
		(!o.HealthyWithDomains || i.hasDomains(i.config.Load())) && (!o.HealthyAfterDomains || i.heard.Load())
}

// healthcheck answers in the form of envoyproxy/ratelimit.
func (d *decisionServer) healthcheck(w http.ResponseWriter, _ *http.Request) {
	if !d.healthy() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "OK")
}

// Start opens the listeners.
func (d *decisionServer) Start(ctx context.Context) (func(), error) {
	i := d.instance
	c := &i.options.Config.Server.GRPC
	if c.Address != "" {
		socket, err := listen.Open(ctx, listen.Config{
			Address: c.Address, Inherited: &i.inherited,
			MaxConnections: c.MaxConnections, PerAddress: c.MaxConnectionsPerAddress, Exempt: i.trusts,
			Admit: d.gates.grpc.Connect,
		})
		if err != nil {
			return nil, listenError("server.grpc", err)
		}
		d.socket = socket
	}
	if err := d.http.open(ctx, &i.inherited, i.options.Log); err != nil {
		return nil, err
	}
	if err := d.resp.open(ctx); err != nil {
		return nil, err
	}
	return d.begin, nil
}

func (d *decisionServer) begin() {
	d.watchMemory()
	if d.socket != nil {
		d.instance.serve(func() error { return d.grpc.Serve(d.pressed(d.socket)) })
	}
	if d.http.socket != nil {
		d.instance.serve(d.http.serve)
	}
	if d.resp.socket != nil {
		d.instance.serve(func() error { return d.resp.serve(d.pressed(d.resp.socket)) })
	}
	d.leases.start(d.instance)
	// Until the store has decided, with unhealthy_without_store.
	d.away.Store(d.instance.options.Config.Server.UnhealthyWithoutStore)
	d.storeReached() // A store in memory is there at once: the line "serving" comes after the health.
	d.waiting.Go(d.awaitStore)
	d.serves.Store(true)
}

// storeReached turns the health to serving if the store was reached once.
func (d *decisionServer) storeReached() bool {
	if !d.instance.rules.reached() {
		return false
	}
	d.reached.Store(true)
	d.showHealth()
	return true
}

// awaitStore waits until the store was reached once.
func (d *decisionServer) awaitStore() {
	again := time.NewTicker(reachedInterval)
	defer again.Stop()
	for !d.storeReached() {
		select {
		case <-d.stop:
			return
		case <-again.C:
		}
	}
	if d.instance.options.Config.Server.UnhealthyWithoutStore {
		d.watchStore()
	}
}

// rateLimitOptions gives the settings of Envoy's rate limit service.
func (d *decisionServer) rateLimitOptions(c *config.Config) rls.Options {
	r := &c.Server.RateLimitService
	o := rls.Options{
		Time: d.times.Observe, NotLoaded: !d.instance.hasDomains(c),
		ShadowMode: r.Mode == guard.Shadow, QuotaMode: r.QuotaMode, StopIncrement: r.StopIncrement, Metadata: r.DynamicMetadata,
		NearRatio: float32(r.NearLimit) / 100,
	}
	if d.instance.rules != nil {
		o.Report = d.instance.rules.report
	}
	if r.ResponseHeaders {
		o.Headers = rls.Headers{Limit: r.LimitHeader, Remaining: r.RemainingHeader, Reset: r.ResetHeader}
	}
	return o
}

// Reload takes the settings of the services. Rules and domains reload in their own component, and
// listeners need a restart.
func (d *decisionServer) Reload(next *config.Config) (Change, error) {
	if next.Server == nil {
		return Change{}, errors.New("app: the new configuration has no server: write server: {grpc: \"127.0.0.1:8081\"}")
	}
	if err := errors.Join(undecidable(next), checkElection(d.instance.options.Config, next)); err != nil {
		return Change{}, err
	}
	return Change{Commit: func() {
		d.limits.SetOptions(d.rateLimitOptions(next))
		d.leases.reload(next)
		d.rebound(next)
		d.showHealth()
	}}, nil
}

// files implements reopener.
func (d *decisionServer) files() []file {
	var all []file
	for part, files := range map[string]*certs.Server{partGRPCCerts: d.secured, partHTTPCerts: d.http.files, partRESPCerts: d.resp.files} {
		if files != nil {
			all = append(all, file{part, files.Reload, func(err error) {
				d.instance.options.Log.Error("certificates not reloaded: the previous certificates stay in use", "part", part, "error", err)
			}})
		}
	}
	return all
}

// Drain refuses new calls and requests, and waits for those in flight.
func (d *decisionServer) Drain(ctx context.Context) error {
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
		ofHTTP = d.http.close(ctx)
	})
	closing.Go(func() { ofRESP = d.resp.drain(ctx) })
	d.decisions.Drain()
	d.leases.drain()
	err := d.grpc.Drain(ctx)
	d.leases.close()
	closing.Wait()
	if d.socket != nil {
		_ = d.socket.Close() // If the server served, it has closed the socket already.
	}
	return errors.Join(err, ofHTTP, ofRESP)
}

// Ready implements Component.
func (d *decisionServer) Ready() error {
	if !d.serves.Load() {
		return errors.New("the server is starting")
	}
	if d.away.Load() {
		return errors.New("the store makes no decisions: see the log")
	}
	return nil
}

// Metrics implements Component.
func (d *decisionServer) Metrics(c *prom.Config) {
	c.Server = d.state
	if d.leases != nil {
		c.Leases = d.leases.state
	}
	c.Collectors = append(c.Collectors, d.collectors()...)
}

// counters are those of Envoy's rate limit service.
func (d *decisionServer) counters() statsd.Source { return statsd.Sources{d.limits, loads{d.instance}} }

// gauges are those of Envoy's rate limit service.
func (d *decisionServer) gauges() statsd.Source { return localCache{d.instance} }

// collectors show the counters, and the times of calls, to Prometheus.
func (d *decisionServer) collectors() []prometheus.Collector {
	return []prometheus.Collector{statsd.NewCollector(d.counters(), d.gauges(), d.mapping), d.times}
}

// localCache has the state of server.rate_limit_service.local_cache.
type localCache struct{ instance *Instance }

// Counters implements statsd.Source. Without the cache there are no gauges.
func (l localCache) Counters(yield func(name string, value uint64)) {
	s := l.instance.rules.guard.Refusals()
	if s.Bytes == 0 {
		return
	}
	for name, value := range map[string]uint64{
		"hitCount": s.Found, "missCount": s.Missed, "lookupCount": s.Found + s.Missed,
		"evacuateCount": s.Replaced, "expiredCount": s.Expired, "overwriteCount": s.Overwritten, "entryCount": uint64(s.Entries),
	} {
		yield("ratelimit.localcache."+name, value)
	}
}

// loads counts loaded and refused configurations under the names of Envoy's rate limit service.
type loads struct{ instance *Instance }

// Counters implements statsd.Source.
func (l loads) Counters(yield func(name string, value uint64)) {
	succeeded, failed := l.instance.rules.report.Reloads.Counts()
	yield("ratelimit.service.config_load_success", succeeded)
	yield("ratelimit.service.config_load_error", failed)
}

func (d *decisionServer) state() prom.Server {
	calls := d.grpc.Stats()
	s := prom.Server{CallMemory: calls.CallMemory, Evicted: calls.Evicted, ClosedForMemory: d.closedForMemory.Load(), Decisions: d.asked()}
	for _, l := range [...]struct {
		name   string
		socket *listen.Listener
		files  *certs.Server
	}{{"grpc", d.socket, d.secured}, {"http", d.http.socket, d.http.files}, {"resp", d.resp.socket, d.resp.files}} {
		if l.socket != nil {
			s.Listeners = append(s.Listeners, listenerState(l.name, l.socket.Stats(), l.files))
		}
	}
	return s
}

// asked gives the counters of headgate.v1 and of HTTP.
func (d *decisionServer) asked() prom.ServerDecisions {
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

// Status implements Component.
func (d *decisionServer) Status(s *admin.Status) {
	if d.socket != nil {
		s.Listen.GRPC = d.socket.Addr().String()
	}
	s.Listen.HTTP, s.Listen.RESP = d.http.address(), d.resp.address()
	domains := d.instance.config.Load().Domains
	for i := range domains {
		domain := &domains[i]
		s.Domains = append(s.Domains, admin.DomainStatus{
			Name: domain.Name, Limits: limitsOf(domain.Descriptors), Fallback: domain.Fallback.String(),
		})
	}
}

// limitsOf counts the descriptors with a limit.
func limitsOf(level []guard.Descriptor) int {
	n := 0
	for i := range level {
		if level[i].Leaf != nil {
			n++
		}
		n += limitsOf(level[i].Descriptors)
	}
	return n
}
