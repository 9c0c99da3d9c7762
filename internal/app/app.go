package app

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/admin"
	"github.com/headgate/headgate/internal/listen"
)

// Instance is a running headgate: a list of parts that live and are reloaded together.
type Instance struct {
	options   Options
	started   time.Time
	addresses admin.Addresses
	draining  atomic.Bool

	// config is what is in effect; reloading is held while it changes.
	config    atomic.Pointer[config.Config]
	reloading sync.Mutex

	parts []Part // in the order of their start
	rules *rules // one of parts
	// inherited are the sockets that the process was started with.
	inherited listen.Inherited

	reloads  reloadState
	reloaded chan struct{} // by order of the admin listener; follow takes it

	serving  sync.WaitGroup
	failed   chan error // the first server that ends by itself
	stopping sync.Once
	stopped  error
}

// Run starts an instance, reloads it when the configuration changes or o.Hangup
// says so, and stops it when ctx ends or a server fails.
func Run(ctx context.Context, o Options) error {
	boundProcess(o.Config)
	i, err := Start(ctx, o)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := i.follow(following)
	select {
	case <-ctx.Done():
	case err = <-i.failed:
	}
	stop()
	<-ended
	return errors.Join(err, i.Stop())
}

// Start gives a running instance, or says what is in its way. ctx bounds the
// start alone: Stop ends the instance.
func Start(ctx context.Context, o Options) (*Instance, error) {
	i := newInstance(o)
	err := i.makeParts()
	if err == nil {
		err = i.startParts(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, i.drainParts(ctx))
	}
	o.Log.Info("serving", "proxy", i.addresses.Proxy, "tls", o.Config.Proxy.TLS.Cert != "", "upstream", i.Status().Upstream,
		"admin", i.addresses.Admin, "health", i.addresses.Health, "rules", len(o.Config.Rules), "version", o.Version)
	return i, nil
}

func newInstance(o Options) *Instance {
	i := &Instance{options: o, started: time.Now(), failed: make(chan error, 1), reloaded: make(chan struct{}, 1)}
	i.config.Store(o.Config)
	return i
}

// startParts starts all parts before one of them serves.
func (i *Instance) startParts(ctx context.Context) error {
	var begins []func()
	for _, p := range i.parts {
		begin, err := p.Start(ctx)
		if err != nil {
			return err
		}
		begins = append(begins, begin)
	}
	i.addresses = i.Status().Listen
	i.rules.report.Reloads.Started(i.started)
	i.reloading.Lock() // A client of the first server may order a reload.
	defer i.reloading.Unlock()
	for _, begin := range begins {
		call(begin)
	}
	return nil
}

// drainParts ends all parts, the last one first.
func (i *Instance) drainParts(ctx context.Context) error {
	var failed error
	for _, p := range slices.Backward(i.parts) {
		failed = errors.Join(failed, p.Drain(ctx))
	}
	i.serving.Wait()
	return failed
}

// serve runs a server until it ends. The first one that ends with an error ends the instance.
func (i *Instance) serve(server func() error) {
	i.serving.Go(func() {
		err := server()
		if err == nil {
			return
		}
		select {
		case i.failed <- err:
		default:
		}
	})
}

// ready returns why the instance does not serve; nil is ready.
func (i *Instance) ready() error {
	if i.draining.Load() {
		return errors.New("draining")
	}
	for _, p := range i.parts {
		if err := p.Ready(); err != nil {
			return err
		}
	}
	return nil
}

// Addresses gives what the instance listens on, with the ports it was given.
func (i *Instance) Addresses() admin.Addresses { return i.addresses }

// Failed gives the error of a server that ended by itself.
func (i *Instance) Failed() <-chan error { return i.failed }

// Stop drains the parts within the configuration's ShutdownTimeout and ends them.
// Further calls wait for the first and give what it gave.
func (i *Instance) Stop() error {
	i.stopping.Do(func() { i.stopped = i.stop() })
	return i.stopped
}

func (i *Instance) stop() error {
	i.reloading.Lock()
	i.draining.Store(true) // From here on there are no reloads.
	i.reloading.Unlock()
	patience := i.config.Load().ShutdownTimeout
	i.options.Log.Info("draining", "in_flight", i.rules.report.Traffic.InFlight.Load(), "shutdown_timeout", patience.String())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := i.drainParts(ctx)
	i.options.Log.Info("stopped")
	return err
}
