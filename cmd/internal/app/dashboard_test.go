package app

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
	"github.com/headgate/headgate/internal/config"
)

// dashboardDomain is the domain that the dashboard shows.
const dashboardDomain = "default/eg/http"

// selectors returns the metrics of the rate limit service in the dashboard of Envoy Gateway, with
// their labels.
func selectors(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "gateway", "global-ratelimit.json"))
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer(`\"`, `"`, "$DefaultDomain", dashboardDomain, ", key", ",key").Replace(string(text))
	for _, found := range regexp.MustCompile(`ratelimit_[a-z_]+\{[^}]*\}`).FindAllString(plain, -1) {
		if !slices.Contains(all, found) {
			all = append(all, found)
		}
	}
	if len(all) != 3 {
		t.Fatalf("the dashboard shows %q, want 3 metrics", all)
	}
	return all
}

// entriesOf returns the entries that a selector names: the labels have the key and the value of each.
func entriesOf(t *testing.T, selector string) (entries []*commonv3.RateLimitDescriptor_Entry) {
	t.Helper()
	for _, found := range regexp.MustCompile(`key\d="([^"]+)"`).FindAllStringSubmatch(selector, -1) {
		for at := range found[1] {
			if key, value := found[1][:at], strings.TrimPrefix(found[1][at:], "_"); key == value {
				entries = append(entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
			}
		}
	}
	if len(entries) != 2 {
		t.Fatalf("found %d entries in %s, want 2", len(entries), selector)
	}
	return entries
}

// TestDashboardOfEnvoyGateway reads each metric of the dashboard after some requests, with the default
// mapping and with that of Envoy Gateway.
func TestDashboardOfEnvoyGateway(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "gateway", "statsd_conf.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, mapping := range map[string]string{"default": "", "statsd_conf.yaml": string(text)} {
		t.Run(name, func(t *testing.T) {
			m, err := statsd.NewMapping(mapping)
			if err != nil {
				t.Fatal(err)
			}
			showDashboard(t, &envoy.Outlets{Prometheus: "127.0.0.1:0", Path: "/metrics", Mapping: m})
		})
	}
}

// showDashboard checks both pages with metrics.
func showDashboard(t *testing.T, o *envoy.Outlets) {
	t.Helper()
	all := selectors(t)
	entries := entriesOf(t, all[0])
	c, err := config.Parse("f", fmt.Appendf(nil, `version: 1
max_memory: 16MiB
server: {grpc: "127.0.0.1:0", http: off}
admin: {listen: off, health: "127.0.0.1:0"}
domains:
  %s:
    descriptors: [{key: %s, value: %s, descriptors: [{key: %s, value: %s, limits: 5/1h}]}]
`, dashboardDomain, entries[0].GetKey(), entries[0].GetValue(), entries[1].GetKey(), entries[1].GetValue()))
	if err != nil {
		t.Fatal(err)
	}
	i, err := Start(t.Context(), Options{Config: c, Server: true, Log: slog.New(slog.DiscardHandler), Outlets: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
	})
	askTimes(t, i.addresses.GRPC, 8, entries)
	// 8 requests against 5 an hour: the fifth is near the limit, and three are over it.
	want := map[string]string{"total_hits": "8", "near_limit": "1", "over_limit": "3"}
	for _, page := range []string{metricsOf(t, i.addresses.Health), metricsOf(t, prometheusOf(t, i))} {
		for _, selector := range all {
			for kind, value := range want {
				if strings.Contains(selector, kind) && !strings.Contains(page, "\n"+selector+" "+value+"\n") {
					t.Errorf("the page lacks %s %s", selector, value)
				}
			}
		}
	}
}

// prometheusOf returns the address of the outlet for scrapes.
func prometheusOf(t *testing.T, i *Instance) string {
	t.Helper()
	for _, c := range i.components {
		if o, found := c.(*envoy.OutletsComponent); found {
			return o.Addresses()[0]
		}
	}
	t.Fatal("the instance has no outlets")
	return ""
}

// askTimes sends a descriptor some times.
func askTimes(t *testing.T, at string, times int, entries []*commonv3.RateLimitDescriptor_Entry) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := ratelimitv3.NewRateLimitServiceClient(conn)
	for range times {
		_, err := client.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
			Domain: dashboardDomain, Descriptors: []*commonv3.RateLimitDescriptor{{Entries: entries}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func metricsOf(t *testing.T, at string) string {
	t.Helper()
	answer, err := http.Get("http://" + at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
