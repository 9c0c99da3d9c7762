package statsd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
)

// fixed is a source with fixed counters.
type fixed map[string]uint64

func (f fixed) Counters(yield func(string, uint64)) {
	for name, value := range f {
		yield(name, value)
	}
}

// TestMapping maps the counters of Envoy's rate limit service. Two limits that differ in their third
// level are one series.
func TestMapping(t *testing.T) {
	const limits = "ratelimit.service.rate_limit."
	m, err := statsd.NewMapping("")
	if err != nil {
		t.Fatal(err)
	}
	c := statsd.NewCollector(statsd.Sources{fixed{
		limits + "shop.client_a.over_limit":                    2,
		limits + "shop.client_a.path_1.verb_get.total_hits":    3,
		limits + "shop.client_a.path_1.verb_put.total_hits":    4,
		limits + "shop.client.over_limit_with_local_cache":     5,
		"ratelimit.service.call.should_rate_limit.redis_error": 6,
	}, fixed{"ratelimit_server.ShouldRateLimit.total_requests": 7, "ratelimit.service.config_load_success": 8}}, fixed{"ratelimit.localcache.entryCount": 9}, m)
	const want = `
# HELP ratelimit_localcache_entryCount Gauge of the rate limit service.
# TYPE ratelimit_localcache_entryCount gauge
ratelimit_localcache_entryCount 9
# HELP ratelimit_service_config_load_success Counter of the rate limit service.
# TYPE ratelimit_service_config_load_success counter
ratelimit_service_config_load_success 8
# HELP ratelimit_service_rate_limit_over_limit Counter of the rate limit service.
# TYPE ratelimit_service_rate_limit_over_limit counter
ratelimit_service_rate_limit_over_limit{domain="shop",key1="client_a"} 2
# HELP ratelimit_service_rate_limit_shop_client_over_limit_with_local_cache Counter of the rate limit service.
# TYPE ratelimit_service_rate_limit_shop_client_over_limit_with_local_cache counter
ratelimit_service_rate_limit_shop_client_over_limit_with_local_cache 5
# HELP ratelimit_service_rate_limit_total_hits Counter of the rate limit service.
# TYPE ratelimit_service_rate_limit_total_hits counter
ratelimit_service_rate_limit_total_hits{domain="shop",key1="client_a",key2="path_1"} 7
# HELP ratelimit_service_should_rate_limit_error Counter of the rate limit service.
# TYPE ratelimit_service_should_rate_limit_error counter
ratelimit_service_should_rate_limit_error{err_type="redis_error"} 6
# HELP ratelimit_service_total_requests Counter of the rate limit service.
# TYPE ratelimit_service_total_requests counter
ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 7
`
	for range 2 { // The second time, the names are known.
		if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
}

// TestOwnMapping has a mapping that drops, scales and renames.
func TestOwnMapping(t *testing.T) {
	m, err := statsd.NewMapping(`mappings:
  - {match: "a.*", action: drop, name: dropped}
  - {match: "b.*", name: kept, scale: 0.5, labels: {part: "$1"}}
  - {match: "calls.*", match_metric_type: observer, observer_type: histogram, name: call_seconds, labels: {method: "$1"},
     histogram_options: {buckets: [1, 10]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	c := statsd.NewCollector(fixed{"a.x": 1, "b.x": 4, "b.\xff": 2}, statsd.Sources{}, m)
	const want = `
# HELP kept Counter of the rate limit service.
# TYPE kept counter
kept{part="_"} 1
kept{part="x"} 2
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	timer := m.NewTimer("calls.Ask")
	timer.Observe(5 * time.Millisecond)
	const times = `
# HELP call_seconds Time of a call.
# TYPE call_seconds histogram
call_seconds_bucket{method="Ask",le="1"} 0
call_seconds_bucket{method="Ask",le="10"} 1
call_seconds_bucket{method="Ask",le="+Inf"} 1
call_seconds_sum{method="Ask"} 5
call_seconds_count{method="Ask"} 1
`
	if err := testutil.CollectAndCompare(timer, strings.NewReader(times)); err != nil {
		t.Error(err)
	}
}

// TestSeriesWithDifferentLabels gathers series of one metric with one and with two levels, as a
// registry does.
func TestSeriesWithDifferentLabels(t *testing.T) {
	m, err := statsd.NewMapping("")
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(statsd.NewCollector(fixed{
		"ratelimit.service.rate_limit.d.a.total_hits": 1, "ratelimit.service.rate_limit.d.a.b.total_hits": 2,
	}, statsd.Sources{}, m))
	families, err := r.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Errorf("got %v, %v, want one metric with two series", families, err)
	}
}

func TestInvalidMappings(t *testing.T) {
	for _, text := range []string{"mappings: 5", "mappings: [{match: 'a.*'}]", "mappings: [{match: '(', match_type: regex, name: a}]", strings.Repeat("#", 2<<20)} {
		if _, err := statsd.NewMapping(text); err == nil || !strings.HasPrefix(err.Error(), "statsd: the mapping ") {
			t.Errorf("%.40q: got %v, want an error of the mapping", text, err)
		}
	}
}
