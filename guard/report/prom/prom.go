package prom

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/store/memory"
)

// Config selects the sources of the metrics.
type Config struct {
	// Report must not be nil.
	Report *report.Report
	// Store returns the state of the store in memory. nil omits it.
	Store func() memory.Stats
	// Shared returns the state of a store that several processes share. nil omits it. The
	// names of its nodes are labels. They come from the configuration or from the cluster.
	Shared func() report.Shared
	// Shares returns the fair shares of clients. nil, and false, omit them. The names of
	// clients are labels. Fair share limits their number.
	Shares func() (Shares, bool)
	// Guard has the requests in flight, and the units that outcomes changed, of its rules. nil
	// omits them.
	Guard *guard.Guard
	// Throttle returns the state of the throttle. nil, and false, omit it.
	Throttle func() (Throttle, bool)
	// Metering returns the state of metering. nil omits it.
	Metering func() MeteringStats
	// Front returns the state of the front's sockets and files. nil omits it.
	Front func() Front
	// Server returns the state of the listeners of headgate server. nil omits it.
	Server func() Server
	// Leases returns the state of the capacity leases of headgate server. nil omits it.
	Leases func() Leases
	// Refused calls yield with the refused clients of each listener and reason. nil omits them.
	Refused func(yield func(listener, reason string, n uint64))
	// Modes calls yield with each mode that was set at run time: of a rule, or of all for "", with the percentage of its keys, and its
	// end, which may be zero. nil omits them.
	Modes func(yield func(rule, mode string, percent int, until time.Time))
	// Sessions is the number of open streams and connections of callers with credentials. nil omits it.
	Sessions func() int64
	// Source returns the state of the source of rules, plans and customers. nil omits it.
	Source func() Source
	// Collectors are registered beside the metrics of this Config.
	Collectors []prometheus.Collector
	// Version, Commit and Go identify the running build.
	Version, Commit, Go string
}

// Front is the state of a front without its traffic.
type Front struct {
	// Connections is the number of open client connections, and MaxConnections is its
	// limit (0 means no limit). Accepted counts all connections. AcceptPauses counts how
	// often the limit was reached.
	Connections, MaxConnections int64
	Accepted, AcceptPauses      uint64
	// AccessLinesDropped counts lines that did not fit into the queue of the access log.
	AccessLinesDropped uint64
	// CertificateExpires is the expiry of the served certificate. The zero time means a
	// front without TLS.
	CertificateExpires time.Time
}

// NewRegistry returns a new registry with all metrics of c, the Go runtime and the
// process.
func NewRegistry(c Config) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	if c.Source != nil {
		c.Collectors = append(slices.Clone(c.Collectors), newSourceCollector(c.Source))
	}
	for _, collector := range append([]prometheus.Collector{
		newCollector(c),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}, c.Collectors...) {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return registry, nil
}

// These limits bound a scrape, which normally takes a few milliseconds.
const (
	scrapeTimeout = 10 * time.Second
	maxScrapes    = 4
)

// Handler serves the metrics of g in the format that the scraper requests.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout})
}
