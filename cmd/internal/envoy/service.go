package envoy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/config"
)

// Service is Envoy's rate limit service with its settings and its counters.
type Service struct {
	*rls.Service

	guard   *guard.Guard
	report  *report.Report
	domains *Domains
	mapping *statsd.Mapping
	times   *statsd.Timer // of calls
}

// NewService makes the service. to names the counters; nil is the mapping of statsd.NewMapping.
func NewService(g *guard.Guard, counted *report.Report, domains *Domains, to *Outlets, c *config.Config) (*Service, error) {
	mapping, err := statsd.NewMapping("")
	if err != nil {
		return nil, err
	}
	if to != nil && to.Mapping != nil {
		mapping = to.Mapping
	}
	s := &Service{guard: g, report: counted, domains: domains, mapping: mapping}
	s.times = mapping.NewTimer("ratelimit_server.ShouldRateLimit.response_time")
	if to != nil && to.Milliseconds {
		s.times.InMilliseconds()
	}
	s.Service = rls.New(g, s.options(c), c.Server.RateLimitService.MaxMetricValues)
	return s, nil
}

// Observe counts the time of a call.
func (s *Service) Observe(d time.Duration) { s.times.Observe(d) }

// Configure takes the settings of a configuration.
func (s *Service) Configure(c *config.Config) { s.SetOptions(s.options(c)) }

// options gives the settings.
func (s *Service) options(c *config.Config) rls.Options {
	r := &c.Server.RateLimitService
	o := rls.Options{
		Time: s.Observe, NotLoaded: !s.domains.Has(c), Report: s.report,
		ShadowMode: r.Mode == guard.Shadow, QuotaMode: r.QuotaMode, StopIncrement: r.StopIncrement, Metadata: r.DynamicMetadata,
		NearRatio: float32(r.NearLimit) / 100,
	}
	if r.ResponseHeaders {
		o.Headers = rls.Headers{Limit: r.LimitHeader, Remaining: r.RemainingHeader, Reset: r.ResetHeader}
	}
	return o
}

// counters are those of Envoy's rate limit service.
func (s *Service) counters() statsd.Source { return statsd.Sources{s.Service, loads{s.report}} }

// gauges are those of Envoy's rate limit service.
func (s *Service) gauges() statsd.Source { return localCache{s.guard} }

// Collectors show the counters, and the times of calls, to Prometheus.
func (s *Service) Collectors() []prometheus.Collector {
	return []prometheus.Collector{statsd.NewCollector(s.counters(), s.gauges(), s.mapping), s.times}
}

// localCache has the state of server.rate_limit_service.local_cache.
type localCache struct{ guard *guard.Guard }

// Counters implements statsd.Source. Without the cache there are no gauges.
func (l localCache) Counters(yield func(name string, value uint64)) {
	s := l.guard.Refusals()
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
type loads struct{ report *report.Report }

// Counters implements statsd.Source.
func (l loads) Counters(yield func(name string, value uint64)) {
	succeeded, failed := l.report.Reloads.Counts()
	yield("ratelimit.service.config_load_success", succeeded)
	yield("ratelimit.service.config_load_error", failed)
}

// DomainStatus lists the domains of a configuration.
func DomainStatus(c *config.Config) []admin.DomainStatus {
	var all []admin.DomainStatus
	for i := range c.Domains {
		domain := &c.Domains[i]
		all = append(all, admin.DomainStatus{
			Name: domain.Name, Limits: limitsOf(domain.Descriptors), Fallback: domain.Fallback.String(),
		})
	}
	return all
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
