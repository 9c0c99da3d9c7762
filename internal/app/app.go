package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/front/proxy"
	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/store/memory"
)

// Instance is a running headgate proxy.
type Instance struct {
	options   Options
	started   time.Time
	addresses Addresses
	draining  atomic.Bool

	store     *memory.Store
	report    *report.Report
	transport *http.Transport
	front     *proxy.Server
	side      []*http.Server // admin and health

	serving  sync.WaitGroup
	failed   chan error // the first server that ends by itself
	stopping sync.Once
	stopped  error
}

// Run starts an instance and stops it when ctx ends or a server fails.
func Run(ctx context.Context, o Options) error {
	boundProcess(o.Config.MaxMemory)
	i, err := Start(ctx, o)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return i.Stop()
	case err := <-i.failed:
		return errors.Join(err, i.Stop())
	}
}

// Start gives a running instance, or says what is in its way. ctx bounds the
// start alone: Stop ends the instance.
func Start(ctx context.Context, o Options) (*Instance, error) {
	if o.Config.Proxy.Upstream == nil {
		return nil, errors.New("app: the configuration has no upstream: write proxy.upstream, as in http://127.0.0.1:9000")
	}
	i := &Instance{options: o, started: time.Now(), failed: make(chan error, 1)}
	handler, err := i.wire()
	if err != nil {
		return nil, err
	}
	if err := i.serve(ctx, handler); err != nil {
		i.report.Close()
		return nil, err
	}
	o.Log.Info("serving", "proxy", i.addresses.Proxy, "upstream", o.Config.Proxy.Upstream.Redacted(),
		"admin", i.addresses.Admin, "health", i.addresses.Health, "rules", len(o.Config.Rules), "version", o.Version)
	return i, nil
}

// wire makes the parts, from the store outwards.
func (i *Instance) wire() (*proxy.Proxy, error) {
	c := i.options.Config
	style, ok := proxy.ParseStyle(string(c.Proxy.HeaderStyle))
	if !ok {
		return nil, fmt.Errorf("app: header_style %q is not known: write draft, x-ratelimit, draft03 or none", c.Proxy.HeaderStyle)
	}
	decisions, ok := report.ParseDecisions(string(c.Log.Decisions))
	if !ok {
		return nil, fmt.Errorf("app: log.decisions %q is not known: write sampled, all or none", c.Log.Decisions)
	}
	store, err := memory.New(c.StoreConfig())
	if err != nil {
		return nil, err
	}
	i.store = store
	i.report = report.New(report.Config{Rules: c.Rules, Log: i.options.Log, Decisions: decisions})
	// A store in memory answers at once: StoreTimeout is for those behind a network.
	g, err := guard.New(guard.Config{Rules: c.Rules, Store: store, Independent: c.Independent, Observer: i.report})
	if err != nil {
		i.report.Close()
		return nil, err
	}
	i.transport = proxy.NewTransport(c.Proxy.UpstreamTimeout)
	p, err := proxy.New(proxy.Config{
		Guard: g, Upstream: c.Proxy.Upstream, Transport: i.transport, Traffic: &i.report.Traffic,
		Style: style, BodyIdle: bodyIdle, Log: i.options.Log,
	})
	if err != nil {
		i.report.Close()
		return nil, err
	}
	return p, nil
}

// Addresses gives what the instance listens on, with the ports it was given.
func (i *Instance) Addresses() Addresses { return i.addresses }

// Failed gives the error of a server that ended by itself.
func (i *Instance) Failed() <-chan error { return i.failed }

// Stop drains the proxy within the configuration's ShutdownTimeout, then ends
// everything else. Further calls wait for the first and give what it gave.
func (i *Instance) Stop() error {
	i.stopping.Do(func() { i.stopped = i.stop() })
	return i.stopped
}

func (i *Instance) stop() error {
	i.draining.Store(true)
	i.options.Log.Info("draining", "in_flight", i.report.Traffic.InFlight.Load(),
		"shutdown_timeout", i.options.Config.ShutdownTimeout.String())
	ctx, cancel := context.WithTimeout(context.Background(), i.options.Config.ShutdownTimeout)
	defer cancel()
	err := i.front.Drain(ctx)
	i.transport.CloseIdleConnections()
	// Health and metrics are answered to the end of the drain.
	i.stopSide()
	i.serving.Wait()
	i.report.Close()
	i.options.Log.Info("stopped")
	return err
}

func (i *Instance) stopSide() {
	ctx, cancel := context.WithTimeout(context.Background(), adminDrain)
	defer cancel()
	for _, s := range i.side {
		if s.Shutdown(ctx) != nil {
			_ = s.Close()
		}
	}
}
