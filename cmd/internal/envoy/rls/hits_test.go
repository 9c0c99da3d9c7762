package rls_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/guard"
)

// counts lists the counters of all limits: total, within, near, over and shadow.
func (s *subject) counts() string {
	var lines []string
	s.Limits().Each(func(name string, h *rls.Hits) {
		lines = append(lines, fmt.Sprintf("%s %d %d %d %d %d", name, h.Total.Load(), h.Within.Load(), h.Near.Load(), h.Over.Load(), h.Shadow.Load()))
	})
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestNearAndOver has the rows of the reference's own tests. Each row counts up to before, and then
// takes the hits in one request.
func TestNearAndOver(t *testing.T) {
	for _, c := range []struct {
		limit, before, hits uint64
		shadow              bool
		want                string // within, near, over and shadow of the last request
	}{
		{15, 10, 1, false, "1 0 0 0"},
		{15, 12, 1, false, "1 1 0 0"},
		{15, 15, 1, false, "0 0 1 0"},
		{20, 2, 3, false, "3 0 0 0"},
		{8, 5, 2, false, "2 1 0 0"},
		{20, 16, 3, false, "3 3 0 0"},
		{5, 2, 5, false, "0 1 2 0"},
		{5, 2, 5, true, "0 1 2 2"},
		{5, 5, 4, true, "0 0 4 4"},
		{5, 7, 0, false, "0 0 0 0"},
		{0, 0, 2, false, "0 0 2 0"},
	} {
		l := counted(int64(c.limit), time.Hour)
		if c.shadow {
			inShadow(l)
		}
		s := serve(t, rls.Options{}, domain(node("k", "", l)))
		read := func() (n [4]uint64) {
			s.Limits().Each(func(_ string, h *rls.Hits) {
				n = [4]uint64{h.Within.Load(), h.Near.Load(), h.Over.Load(), h.Shadow.Load()}
			})
			return n
		}
		s.ask("d", hits(c.before, asked("k", "v")))
		was := read()
		s.ask("d", hits(c.hits, asked("k", "v")))
		now := read()
		if got := fmt.Sprintf("%d %d %d %d", now[0]-was[0], now[1]-was[1], now[2]-was[2], now[3]-was[3]); got != c.want {
			t.Errorf("%d hits after %d of %d: got %s, want %s", c.hits, c.before, c.limit, got, c.want)
		}
	}
}

// TestMetricNames checks which names values of requests make, and how many. The service has room for
// three names of a limit.
func TestMetricNames(t *testing.T) {
	detailed := node("user", "", counted(9, time.Hour))
	detailed.DetailedMetric = true
	onLevel := node("path", "", nil, node("host", "", counted(9, time.Hour)))
	onLevel.ValueToMetric = true
	s := serve(t, rls.Options{}, guard.Config{Domains: []guard.Domain{{Name: "d", Descriptors: []guard.Descriptor{
		node("k", "", counted(9, time.Hour)), node("k", "v", counted(9, time.Hour)), detailed, onLevel,
	}}}})
	for _, value := range []string{"a", "b", "c", "d", "e"} {
		s.ask("d", asked("k", value), asked("user", value), asked("path", value, "host", value))
		s.ask("d", sent(5, typev3.RateLimitUnit_HOUR, asked(value, "1")))
	}
	s.ask("d", asked("k", "v"))
	want := `d.a_1 1 1 0 0 0
d.b_1 1 1 0 0 0
d.c_1 1 1 0 0 0
d.k 5 5 0 0 0
d.k_v 1 1 0 0 0
d.other 2 2 0 0 0
d.path_a.host 1 1 0 0 0
d.path_b.host 1 1 0 0 0
d.path_c.host 1 1 0 0 0
d.path_other.host 2 2 0 0 0
d.user_a 1 1 0 0 0
d.user_b 1 1 0 0 0
d.user_c 1 1 0 0 0
d.user_other 2 2 0 0 0`
	if got := s.counts(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestServiceCounters checks the counters of the service, by their names.
func TestServiceCounters(t *testing.T) {
	s := serve(t, rls.Options{ShadowMode: true}, domain(node("k", "v:1", counted(1, time.Hour))))
	for range 3 {
		s.ask("d", asked("k", "v:1"))
	}
	for _, name := range []string{"a|b", "c", "d.e", "f", "g"} {
		s.ask(name, asked("k", "v"))
	}
	s.ask("c", asked("k", "v"), asked("k", "w")) // Each descriptor counts.
	if _, err := s.ShouldRateLimit(t.Context(), request("")); err == nil {
		t.Fatal("a request without a domain was decided")
	}
	var lines []string
	s.Service.Counters(func(name string, value uint64) { lines = append(lines, fmt.Sprint(name, " ", value)) })
	slices.Sort(lines)
	const want = `ratelimit.service.call.should_rate_limit.redis_error 0
ratelimit.service.call.should_rate_limit.service_error 1
ratelimit.service.global_shadow_mode 2
ratelimit.service.rate_limit.a_b.domain_not_found 1
ratelimit.service.rate_limit.c.domain_not_found 3
ratelimit.service.rate_limit.d.e.domain_not_found 1
ratelimit.service.rate_limit.d.k_v_1.near_limit 1
ratelimit.service.rate_limit.d.k_v_1.over_limit 2
ratelimit.service.rate_limit.d.k_v_1.shadow_mode 0
ratelimit.service.rate_limit.d.k_v_1.total_hits 3
ratelimit.service.rate_limit.d.k_v_1.within_limit 1
ratelimit.service.rate_limit.other.domain_not_found 2
ratelimit_server.ShouldRateLimit.total_requests 10`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestHitsFromMemory: hits that the memory of refusals refuses count under a name of their own, too.
func TestHitsFromMemory(t *testing.T) {
	c := domain(node("k", "v", counted(1, time.Hour)), node("s", "v", inShadow(counted(1, time.Hour))))
	c.RefusalsMemory = 1 << 16
	s := serve(t, rls.Options{}, c)
	for range 3 {
		s.ask("d", hits(2, asked("k", "v")), asked("s", "v"))
	}
	got := map[string]uint64{}
	s.Service.Counters(func(name string, value uint64) { got[name] = value })
	for name, want := range map[string]uint64{
		"k_v.total_hits": 6, "k_v.over_limit": 5, "k_v.near_limit": 1, "k_v.within_limit": 0, "k_v.over_limit_with_local_cache": 4,
		"s_v.total_hits": 3, "s_v.over_limit": 2, "s_v.shadow_mode": 2, "s_v.over_limit_with_local_cache": 1,
	} {
		if value := got["ratelimit.service.rate_limit.d."+name]; value != want {
			t.Errorf("%s is %d, want %d", name, value, want)
		}
	}
}
