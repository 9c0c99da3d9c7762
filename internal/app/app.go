package app

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/accesslog"
	"github.com/headgate/headgate/internal/admin"
	"github.com/headgate/headgate/internal/certs"
	"github.com/headgate/headgate/internal/front/proxy"
	"github.com/headgate/headgate/internal/listen"
	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/store/open"
)

// Instance is a running headgate proxy.
type Instance struct {
	options   Options
	started   time.Time
	addresses admin.Addresses
	draining  atomic.Bool

	// config is what is in effect; reloading is held while it changes.
	config    atomic.Pointer[config.Config]
	reloading sync.Mutex

	store    *open.Opened
	guard    *guard.Guard
	report   *report.Report
	proxy    *proxy.Proxy
	upstream *proxy.Upstream // under reloading
	clients  *certs.Server   // nil without TLS
	services *certs.Client   // under reloading; nil without TLS to the upstream
	secured  *tls.Config     // of clients; nil without TLS
	access   *accesslog.Log  // nil without an access log
	socket   *listen.Listener
	// inherited are the sockets that the process was started with.
	inherited listen.Inherited
	front     *proxy.Server
	side      []*http.Server // admin and health

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
	if o.Config.Proxy.Upstream == nil {
		return nil, errors.New("app: the configuration has no upstream: write proxy.upstream, as in http://127.0.0.1:9000")
	}
	i := &Instance{options: o, started: time.Now(), failed: make(chan error, 1), reloaded: make(chan struct{}, 1)}
	i.config.Store(o.Config)
	err := i.wire()
	if err == nil {
		err = i.serve(ctx)
	}
	if err != nil {
		i.closeStore()
		i.closeLogs()
		return nil, err
	}
	i.report.Reloads.Started(i.started)
	i.tellFairShare(nil, o.Config)
	o.Log.Info("serving", "proxy", i.addresses.Proxy, "tls", i.clients != nil, "upstream", o.Config.Proxy.Upstream.Redacted(),
		"admin", i.addresses.Admin, "health", i.addresses.Health, "rules", len(o.Config.Rules), "version", o.Version)
	return i, nil
}

// Addresses gives what the instance listens on, with the ports it was given.
func (i *Instance) Addresses() admin.Addresses { return i.addresses }

// Failed gives the error of a server that ended by itself.
func (i *Instance) Failed() <-chan error { return i.failed }

// Stop drains the proxy within the configuration's ShutdownTimeout, then ends
// everything else. Further calls wait for the first and give what it gave.
func (i *Instance) Stop() error {
	i.stopping.Do(func() { i.stopped = i.stop() })
	return i.stopped
}

func (i *Instance) stop() error {
	i.reloading.Lock()
	i.draining.Store(true) // From here on there are no reloads.
	upstream := i.upstream
	i.reloading.Unlock()
	i.options.Log.Info("draining", "in_flight", i.report.Traffic.InFlight.Load(),
		"shutdown_timeout", i.config.Load().ShutdownTimeout.String())
	ctx, cancel := context.WithTimeout(context.Background(), i.config.Load().ShutdownTimeout)
	defer cancel()
	err := i.front.Drain(ctx)
	upstream.CloseIdleConnections()
	// Health and metrics are answered to the end of the drain.
	i.stopSide()
	i.serving.Wait()
	i.closeStore()
	i.closeLogs()
	i.options.Log.Info("stopped")
	return err
}

// closeStore ends what the store has with its servers.
func (i *Instance) closeStore() {
	if i.store == nil {
		return
	}
	if err := i.store.Close(); err != nil {
		i.options.Log.Warn("the store was not closed cleanly", "error", err)
	}
}

// closeLogs writes what is still to be written.
func (i *Instance) closeLogs() {
	if i.report != nil {
		i.report.Close()
	}
	if i.access == nil {
		return
	}
	if err := i.access.Close(); err != nil {
		i.options.Log.Error("the end of the access log may be missing", "error", err)
	}
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
