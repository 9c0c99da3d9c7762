package app

import (
	"context"
	"errors"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/heap/bounds"
	"github.com/headgate/headgate/cmd/internal/lease"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/cmd/internal/proxy"
	"github.com/headgate/headgate/cmd/internal/rules"
	"github.com/headgate/headgate/cmd/internal/source"
	"github.com/headgate/headgate/internal/config"
)

// Instance is a running headgate. It has a list of components, which start, reload and drain together.
type Instance struct {
	options   Options
	started   time.Time
	addresses admin.Addresses
	// draining is set once, under applying.
	draining atomic.Bool
	// applying is held while components take a configuration, so that none of them is drained meanwhile. Unlike reloading, it is never
	// held while a file or objects are read, which may take longer than ShutdownTimeout.
	applying sync.Mutex

	// config is the configuration in effect. Writers hold reloading.
	config    atomic.Pointer[config.Config]
	reloading sync.Mutex
	asked     bool // Reload reads the file, for an operator or a changed file. Guarded by reloading.
	// base is the configuration without the domains of the source. Guarded by reloading.
	base *config.Config

	host       *component.Host
	memory     *bounds.Process
	components []component.Component // The order is the order of the start.

	// These are also components.
	rules     *rules.Rules
	leases    *lease.Component
	accessLog *proxy.AccessLog // nil for headgate server, because only the proxy writes an access log
	access    *access.Component
	// overlays are what operators have changed at run time, in the order in which they change the configuration.
	overlays []component.Overlay
	objects  *objects.Component
	domains  *envoy.Domains   // nil without a source of domains
	source   *source.Follower // nil without a source

	reloads  component.Failures
	reloaded chan struct{} // The admin listener sends after it reloaded; follow receives.

	stopping sync.Once
	stopped  error
}

// Run starts an instance and stops it when ctx ends or a server fails. It reloads the
// instance when a file of the configuration changes or o.Hangup receives a signal.
func Run(ctx context.Context, o Options) error {
	memory := bounds.Process{First: o.Config, Server: o.Server}
	memory.Set()
	o.bounded = true
	i, err := Start(ctx, o)
	if err != nil {
		return startError(&o, err)
	}
	go debug.FreeOSMemory() // Reading a configuration of 1,000 rules leaves garbage of 25 MB, for which small heaps are not collected.
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := i.follow(following)
	select {
	case <-ctx.Done():
	case err = <-i.host.Failed():
	}
	stop()
	i.host.EndsLater("the reload of the configuration", func() { <-ended })
	return errors.Join(err, i.Stop())
}

// ConfigError is a failed start whose cause is the configuration, or a file that it names: Probe finds it too.
type ConfigError struct{ error }

func (e ConfigError) Unwrap() error { return e.error }

// startError tells whether a start failed because of the configuration, or of the machine, like a port in use. A fault of the section
// that the command does not serve is not the cause.
func startError(o *Options, err error) error {
	served := *o.Config
	if o.Server {
		served.Proxy.Upstream = nil
	} else if served.Server != nil {
		callers := *served.Server // headgate proxy needs the callers of the section for admin.auth.
		callers.GRPC, callers.HTTP, callers.RESP = config.ServerGRPC{}, config.ServerHTTP{}, config.ServerRESP{}
		served.Server = &callers
	}
	if Probe(&served) != nil {
		return ConfigError{o.Config.Located(err)}
	}
	return err
}

// Start starts an instance. ctx bounds only the start: Stop ends the instance.
func Start(ctx context.Context, o Options) (*Instance, error) {
	i := newInstance(o)
	err := i.makeComponents()
	if err == nil {
		err = i.startComponents(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, i.drainComponents(ctx))
	}
	i.logServing()
	return i, nil
}

// logServing writes the start line.
func (i *Instance) logServing() {
	o := &i.options
	var terms []any
	if o.Server {
		terms = []any{"grpc", i.addresses.GRPC, "http", i.addresses.HTTP, "resp", i.addresses.RESP}
	} else {
		terms = []any{"proxy", i.addresses.Proxy, "tls", o.Config.Proxy.TLS.Cert != "", "upstream", i.Status().Upstream}
		terms = append(terms, proxy.DataPlaneTerms(&o.Config.Proxy)...)
	}
	terms = append(terms, "admin", i.addresses.Admin, "health", i.addresses.Health, "rules", len(o.Config.Rules), "version", o.Version)
	o.Log.Info("serving", terms...)
	i.warnUnserved(nil, o.Config)
}

func newInstance(o Options) *Instance {
	i := &Instance{options: o, started: time.Now(), reloaded: make(chan struct{}, 1)}
	if o.Domains != nil {
		i.options.Config = o.Config.FollowsSource()
	}
	i.host = component.NewHost(o.Log, o.probe, i.reloadEnded)
	i.memory = &bounds.Process{First: i.options.Config, Server: o.Server, Followed: o.bounded}
	i.domains = envoy.NewDomains(i.host, configuration{i}, o.Domains)
	i.base = i.options.Config
	i.config.Store(i.base)
	return i
}

// startComponents starts all components before one of them serves.
func (i *Instance) startComponents(ctx context.Context) error {
	var begins []func()
	for _, p := range i.components {
		begin, err := p.Start(ctx)
		if err != nil {
			return err
		}
		begins = append(begins, begin)
	}
	i.addresses = i.Status().Listen
	i.rules.Report().Reloads.Started(i.started)
	i.reloading.Lock() // A client of the first server may request a reload already.
	defer i.reloading.Unlock()
	for _, begin := range begins {
		if begin != nil {
			begin()
		}
	}
	return nil
}

// drainComponents drains all components in reverse order.
func (i *Instance) drainComponents(ctx context.Context) error {
	var failed error
	for _, p := range slices.Backward(i.components) {
		failed = errors.Join(failed, p.Drain(ctx))
	}
	i.host.Wait(ctx)
	return failed
}

// ready returns the reason why the instance does not serve, or nil when it is ready.
func (i *Instance) ready() error {
	if i.draining.Load() {
		return errors.New("draining")
	}
	for _, p := range i.components {
		if err := p.Ready(); err != nil {
			return err
		}
	}
	return nil
}

// trusts reports whether identity.trusted_proxies contains the address.
func (i *Instance) trusts(peer netip.Addr) bool { return i.rules.Trusts(peer) }

// Addresses returns the addresses that the instance listens on, with the actual ports.
func (i *Instance) Addresses() admin.Addresses { return i.Status().Listen }

// Failed receives the error of the first server that ends by itself.
func (i *Instance) Failed() <-chan error { return i.host.Failed() }

// Stop drains and ends the components within the configuration's ShutdownTimeout. Later
// calls wait for the first call and return the same error.
func (i *Instance) Stop() error {
	i.stopping.Do(func() { i.stopped = i.stop() })
	return i.stopped
}

func (i *Instance) stop() error {
	if i.source != nil {
		i.source.Interrupt() // A check of many changes ends.
	}
	return i.stopBy(i.config.Load().ShutdownTimeout)
}

// stopBy drains the components. Requests in flight have patience.
func (i *Instance) stopBy(patience time.Duration) error {
	i.applying.Lock()
	i.draining.Store(true) // No component takes a configuration from here on.
	i.applying.Unlock()
	i.options.Log.Info("draining", "in_flight", i.rules.Report().Traffic.InFlight.Load(), "shutdown_timeout", patience.String())
	until := time.Now().Add(patience)
	ctx, cancel := context.WithDeadline(component.WithLast(context.Background(), until.Add(component.LastDrain)), until)
	defer cancel()
	err := i.drainComponents(ctx)
	i.options.Log.Info("stopped")
	return err
}

// apply has components take a configuration or, after an error, none of them.
func (i *Instance) apply(components []component.Component, next *config.Config) error {
	i.applying.Lock()
	defer i.applying.Unlock()
	if i.draining.Load() {
		return component.ErrStopping
	}
	for _, o := range i.overlays {
		next = o.Over(next)
	}
	return component.Reload(components, next)
}
