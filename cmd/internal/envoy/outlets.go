package envoy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
	"github.com/headgate/headgate/cmd/internal/httpserver"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
)

// Outlets are the places where envoyproxy/ratelimit shows its counters and its limits.
type Outlets struct {
	// Prometheus is the address of a listener for scrapes, and Path the path of the metrics. ""
	// opens none.
	Prometheus, Path string
	// Debug is the address of a listener for /rlconfig, /stats and /debug/pprof/. "" opens none.
	Debug string
	// Mapping names the metrics; nil is the mapping of statsd.NewMapping.
	Mapping *statsd.Mapping
	// Milliseconds shows times of calls in milliseconds, whatever the Mapping says about their scale.
	Milliseconds bool
	// Receivers get lines of statsd.
	Receivers []statsd.Config
}

// outletConnections bounds the connections of each listener of outlets.
const outletConnections = 64

// OutletsComponent is the component of Outlets.
type OutletsComponent struct {
	component.Defaults

	host     *component.Host
	service  *Service
	settings *Outlets
	inEffect func() *config.Config
	sides    []*httpserver.Server
	senders  atomic.Pointer[[]*statsd.Sender] // nil before Start
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// NewOutlets makes the component. inEffect gives the configuration in effect, whose domains /rlconfig lists.
func NewOutlets(host *component.Host, s *Service, settings *Outlets, inEffect func() *config.Config) *OutletsComponent {
	return &OutletsComponent{host: host, service: s, settings: settings, inEffect: inEffect}
}

// Start opens the listeners.
func (o *OutletsComponent) Start(ctx context.Context) (func(), error) {
	settings := o.settings
	senders := make([]*statsd.Sender, 0, len(settings.Receivers))
	for _, c := range settings.Receivers {
		var err error
		var sender *statsd.Sender
		c.Fault, c.Gauges = o.fault(c.Address, func() uint64 { return sender.Dropped() }), o.service.gauges()
		if sender, err = statsd.NewSender(o.service.counters(), c); err != nil {
			return nil, fmt.Errorf("app: %w", err)
		}
		senders = append(senders, sender)
	}
	o.senders.Store(&senders)
	metrics, err := o.metrics(settings.Path)
	if err != nil {
		return nil, err
	}
	for _, s := range [...]*httpserver.Server{
		{Setting: "prometheus", Address: settings.Prometheus, Handler: metrics},
		{Setting: "debug", Address: settings.Debug, Handler: o.debug()},
	} {
		s.Connections, s.Body = outletConnections, httpserver.OperatorBody
		s.Idle, s.Longest = httpserver.OperatorIdle, httpserver.OperatorLongest
		if err := s.Open(ctx, nil, o.host.Log); err != nil {
			return nil, err
		}
		o.sides = append(o.sides, s)
	}
	return o.begin, nil
}

// begin serves, and sends lines until Drain.
func (o *OutletsComponent) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	for _, s := range *o.senders.Load() {
		o.running.Go(func() { s.Run(ctx) })
	}
	for _, s := range o.sides {
		if s.Opened() {
			o.host.Serve(s.Serve)
			o.host.Log.Info("serving counters", "listener", s.Setting, "address", s.At())
		}
	}
}

// fault logs when lines are dropped, and when they no longer are. dropped counts those of the process.
func (o *OutletsComponent) fault(address string, dropped func() uint64) func(error) {
	log := o.host.Log
	return func(err error) {
		if err != nil {
			log.Warn("counters are not sent", "to", address, "dropped_lines", dropped(), "error", err)
			return
		}
		log.Info("counters are sent again", "to", address, "dropped_lines", dropped())
	}
}

// Metrics implements component.Component.
func (o *OutletsComponent) Metrics(c *prom.Config) {
	c.Collectors = append(c.Collectors, prom.Receivers(func() (all []prom.Receiver) {
		o.eachReceiver(func(r statsd.Config, s *statsd.Sender) {
			all = append(all, prom.Receiver{Network: r.Network, Address: r.Address, Dropped: s.Dropped(), Failing: s.Problem() != ""})
		})
		return all
	}))
}

// Status implements component.Component.
func (o *OutletsComponent) Status(s *admin.Status) {
	o.eachReceiver(func(r statsd.Config, sender *statsd.Sender) {
		s.Receivers = append(s.Receivers, admin.ReceiverStatus{
			Network: r.Network, Address: r.Address, DroppedLines: sender.Dropped(), Error: sender.Problem(),
		})
	})
}

// eachReceiver gives the receivers with their senders.
func (o *OutletsComponent) eachReceiver(yield func(statsd.Config, *statsd.Sender)) {
	senders := o.senders.Load()
	if senders == nil {
		return
	}
	for n, s := range *senders {
		yield(o.settings.Receivers[n], s)
	}
}

// metrics serves the counters alone, as envoyproxy/ratelimit does, with those of the process.
func (o *OutletsComponent) metrics(path string) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	all := append(o.service.Collectors(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("app: metrics: %w", err)
		}
	}
	serve := prom.Handler(registry)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		serve.ServeHTTP(w, r)
	}), nil
}

// debug serves the limits in force, the counters, and profiles.
func (o *OutletsComponent) debug() http.Handler {
	mux := http.NewServeMux()
	page := func(pattern string, text func() string) {
		mux.HandleFunc(pattern, calls.OwnSite(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			_, _ = io.WriteString(w, text()) // The client has gone if this fails.
		}))
	}
	page("GET /{$}", func() string {
		return "/debug/pprof/: profiles\n/rlconfig: the limits in force\n/stats: the counters\n"
	})
	page("GET /rlconfig", func() string { return rls.Listing(o.inEffect().Domains) })
	page("GET /stats", o.stats)
	for _, r := range calls.Profiles() {
		mux.HandleFunc(r.Pattern, r.Handler)
	}
	return mux
}

// stats lists the counters and gauges by name.
func (o *OutletsComponent) stats() string {
	var lines []string
	statsd.Sources{o.service.counters(), o.service.gauges()}.Counters(func(name string, value uint64) {
		lines = append(lines, fmt.Sprintf("%s: %d\n", name, value))
	})
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// outletsDrain bounds the wait for a scrape in flight. Lines are sent meanwhile.
const outletsDrain = 3 * time.Second

// Drain sends the last lines, and closes the listeners.
func (o *OutletsComponent) Drain(ctx context.Context) error {
	ctx, cancel := component.Lastly(ctx, outletsDrain)
	defer cancel()
	if o.cancel != nil {
		o.cancel()
		o.running.Wait() // A send has a deadline of its own.
	}
	for _, s := range o.sides {
		_ = s.Close(ctx) // A scrape that is cut off loses nothing.
	}
	return nil
}

// Addresses lists the addresses of the listeners: of Prometheus, and of Debug.
func (o *OutletsComponent) Addresses() (all []string) {
	for _, s := range o.sides {
		all = append(all, s.At())
	}
	return all
}
