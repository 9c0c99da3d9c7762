package prom

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/store/memory"
)

// Config says what is shown.
type Config struct {
	// Report is shown; it must not be nil.
	Report *report.Report
	// Store gives the state of the store in memory; nil shows none.
	Store func() memory.Stats
	// Shared gives the state of a store that many processes share; nil shows none. The names of
	// its nodes are labels: they come from the configuration, or from the cluster.
	Shared func() report.Shared
	// Shares gives who has what of a capacity that clients share; nil, and false, show
	// none. The names of clients are labels: fair share bounds how many there are.
	Shares func() (Shares, bool)
	// Front gives the state of the front's sockets and files; nil shows none.
	Front func() Front
	// Version, Commit and Go say which build is running.
	Version, Commit, Go string
}

// Front is the state of a front beside its traffic.
type Front struct {
	// Connections are those of clients that are open, of MaxConnections at most (0 is
	// no bound). Accepted counts all, and AcceptPauses how often the bound was met.
	Connections, MaxConnections int64
	Accepted, AcceptPauses      uint64
	// AccessLinesDropped counts lines of the access log for which there was no room.
	AccessLinesDropped uint64
	// CertificateExpires is when the certificate that is served ends; the zero time is
	// a front without TLS.
	CertificateExpires time.Time
}

// NewRegistry gives a registry of its own with everything of c, the Go runtime and
// the process.
func NewRegistry(c Config) (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	for _, collector := range []prometheus.Collector{
		newCollector(c),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return registry, nil
}

// Bounds of a scrape: one takes some milliseconds.
const (
	scrapeTimeout = 10 * time.Second
	maxScrapes    = 4
)

// Handler serves what g gathers, in the format that the scraper asks for.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout})
}
