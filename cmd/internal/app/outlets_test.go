package app

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
	"github.com/headgate/headgate/cmd/internal/server"
	"github.com/headgate/headgate/internal/config"
)

// TestTimesInMilliseconds: a time of one second counts as 1 by the built-in mapping, and as 1000 with
// Milliseconds.
func TestTimesInMilliseconds(t *testing.T) {
	for milliseconds, want := range map[bool]string{false: "1", true: "1000"} {
		o := serverOptions(t, "")
		o.Outlets = &envoy.Outlets{Prometheus: "127.0.0.1:0", Path: "/metrics", Milliseconds: milliseconds}
		i := startServer(t, o)
		var address string
		for _, p := range i.components {
			switch p := p.(type) {
			case *server.Server:
				p.Limits().Observe(time.Second)
			case *envoy.OutletsComponent:
				address = p.Addresses()[0]
			}
		}
		_, text := get(t, address+"/metrics")
		if line := "response_time_seconds_sum{grpc_method=\"ShouldRateLimit\"} " + want + "\n"; !strings.Contains(text, line) {
			t.Errorf("milliseconds %t: no line %s", milliseconds, line)
		}
	}
}

// TestOutlets reads the counters of one call on all outlets.
func TestOutlets(t *testing.T) {
	receiver, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	c, err := config.Parse("f", []byte(`version: 1
max_memory: 16MiB
server: {grpc: "127.0.0.1:0", http: off}
admin: {listen: off, health: off}
domains: {d: {descriptors: [{key: k, limits: 3/1h}]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	i, err := Start(t.Context(), Options{Config: c, Server: true, Log: slog.New(slog.DiscardHandler), Outlets: &envoy.Outlets{
		Prometheus: "127.0.0.1:0", Path: "/stats/all", Debug: "127.0.0.1:0",
		Receivers: []statsd.Config{{Network: "tcp", Address: receiver.Addr().String(), Interval: time.Hour}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := askOf(t, i.addresses.GRPC)("d"); got != "3" {
		t.Errorf("the limit is %s, want 3", got)
	}
	var shown *envoy.OutletsComponent
	for _, p := range i.components {
		if o, found := p.(*envoy.OutletsComponent); found {
			shown = o
		}
	}
	get := func(address, path string) string {
		t.Helper()
		answer, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status + "\n" + string(text)
	}
	for _, row := range []struct {
		side string
		path string
		want string
	}{
		{shown.Addresses()[0], "/stats/all", "\nratelimit_service_rate_limit_total_hits{domain=\"d\",key1=\"k\"} 1\n"},
		{shown.Addresses()[0], "/metrics", "404 Not Found\n"},
		{shown.Addresses()[1], "/rlconfig", "200 OK\nd.k: unit=HOUR requests_per_unit=3, shadow_mode: false, quota_mode: false\n"},
		{shown.Addresses()[1], "/stats", "\nratelimit.service.rate_limit.d.k.total_hits: 1\n"},
		{shown.Addresses()[1], "/", "/rlconfig: the limits in force\n"},
		{shown.Addresses()[1], "/debug/pprof/cmdline", "200 OK\n"},
	} {
		if got := get(row.side, row.path); !strings.Contains(got, row.want) {
			t.Errorf("%s lacks %q:\n%.2000s", row.path, row.want, got)
		}
	}
	if err := i.Stop(); err != nil {
		t.Error(err)
	}
	conn, err := receiver.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines, err := io.ReadAll(bufio.NewReader(conn))
	if err != nil || !strings.Contains(string(lines), "ratelimit.service.rate_limit.d.k.total_hits:1|c\n") {
		t.Errorf("the receiver got %v\n%s", err, lines)
	}
}
