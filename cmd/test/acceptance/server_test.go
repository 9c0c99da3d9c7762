package acceptance

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// decisionService is a configuration of headgate server, and of a proxy, which the command does
// not serve.
const decisionService = `version: 1
max_memory: 16MiB
rules:
  - {name: first, key: [ip], limits: ["5/1s"]}
proxy: {listen: "127.0.0.1:0", upstream: "http://127.0.0.1:9"}
server: {grpc: "127.0.0.1:0", http: {address: "127.0.0.1:0", max_body: 1KiB}}
` + adminAnywhere

// launchServer runs headgate server and waits until it serves.
func launchServer(t *testing.T, path string) *instance {
	t.Helper()
	return serve(t, path, exec.Command(binary, "server", "--config", path))
}

// TestServer tells the life of headgate server: health, reload and drain.
func TestServer(t *testing.T) {
	t.Parallel()
	i := launchServer(t, file(t, decisionService))
	if i.Proxy != "" {
		t.Errorf("headgate server also serves a proxy on %s", i.Proxy)
	}
	client := healthClient(t, i.GRPC)
	for _, name := range []string{"", "ratelimit"} {
		eventually(t, "the gRPC health of "+name, func() bool { return healthOf(t, client, name) == healthpb.HealthCheckResponse_SERVING })
	}
	if status, text := pageOf(t, "http://"+i.HTTP+"/healthcheck"); status != http.StatusOK || text != "OK" {
		t.Errorf("healthcheck answers %d %q", status, text)
	}
	if status, text := pageOf(t, "http://"+i.Health+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz answers %d %q", status, text)
	}
	if status, table, _ := call(t, "ctl", "status", "--admin", i.Admin); status != 0 || !strings.Contains(table, "gRPC on "+i.GRPC+"\n") ||
		!strings.Contains(table, "HTTP on "+i.HTTP+"\n") || !strings.Contains(table, "first") {
		t.Errorf("ctl status has status %d and prints\n%s", status, table)
	}
	reloadServer(t, i)
	watching, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watching.Recv(); err != nil || first.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("the first status is %v, %v", first, err)
	}
	if status := i.stop(); status != 0 {
		t.Errorf("after SIGTERM the exit status is %d\n%s", status, i.text())
	}
	if last, err := watching.Recv(); err != nil || last.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("a watching client is told %v, %v", last, err)
	}
}

// reloadServer reloads the file by SIGHUP and by ctl. A faulty file changes nothing.
func reloadServer(t *testing.T, i *instance) {
	t.Helper()
	rewrite := func(old, text string) {
		t.Helper()
		if err := os.WriteFile(i.path, []byte(strings.Replace(decisionService, old, text, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ruled := func(name string) bool {
		_, table, _ := call(t, "ctl", "status", "--admin", i.Admin)
		return strings.Contains(table, name)
	}
	rewrite("name: first", "name: second")
	i.hangup(t)
	if !ruled("second") {
		t.Error("the reload did not take the rule")
	}
	rewrite("server: {grpc", "server: {grcp")
	if status, _, stderr := call(t, "ctl", "reload", "--admin", i.Admin); status != 2 || !strings.Contains(stderr, ":6:10: server: field \"grcp\" is not known") {
		t.Errorf("a faulty file: status %d\n%s", status, stderr)
	}
	rewrite(`grpc: "127.0.0.1:0"`, `grpc: "127.0.0.1:1"`)
	if status, _, stderr := call(t, "ctl", "reload", "--admin", i.Admin); status != 1 || !strings.Contains(stderr, "server.grpc.address") {
		t.Errorf("a changed address: status %d\n%s", status, stderr)
	}
	eventually(t, "the warning", func() bool { return strings.Contains(i.text(), `"setting":"server.grpc.address"`) })
	if !ruled("first") || healthOf(t, healthClient(t, i.GRPC), "") != healthpb.HealthCheckResponse_SERVING {
		t.Error("the listener did not stay open over the reload")
	}
}

// TestServerRefusesFaults: a wrong configuration ends with status 2 and its position.
func TestServerRefusesFaults(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text, want string
	}{
		"a fault":          {"version: 1\nrules: []\nserver: {grpc: {max_streams: many}}\n", ":3:30: server.grpc.max_streams: must be a whole number"},
		"no section":       {"version: 1\nrules: []\nproxy: {upstream: 'http://127.0.0.1:9'}\n", "has no section server: write server: {grpc: 127.0.0.1:8081"},
		"no listener":      {"version: 1\nrules: []\nserver: {grpc: off, http: off}\n", ":3:9: server: has no listener"},
		"proxy and server": {"version: 1\nrules: []\nserver: {}\nproxy: {}\n", ""},
	} {
		path := file(t, row.text)
		if row.want == "" {
			if status, _, stderr := call(t, "proxy", "--config", path); status != 2 || !strings.Contains(stderr, "upstream") {
				t.Errorf("%s: status %d\n%s", name, status, stderr)
			}
			continue
		}
		if status, _, stderr := call(t, "server", "--config", path); status != 2 || !strings.Contains(stderr, row.want) {
			t.Errorf("%s: status %d, want 2 and %q\n%s", name, status, row.want, stderr)
		}
	}
	if status, help, _ := call(t, "server", "--help"); status != 0 || !strings.Contains(help, "healthcheck") || !strings.Contains(help, "--config") {
		t.Errorf("the help has status %d\n%s", status, help)
	}
}

func healthClient(t *testing.T, at string) healthpb.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return healthpb.NewHealthClient(conn)
}

func healthOf(t *testing.T, client healthpb.HealthClient, name string) healthpb.HealthCheckResponse_ServingStatus {
	t.Helper()
	answer, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
	if err != nil {
		t.Fatalf("the health of %q: %v", name, err)
	}
	return answer.GetStatus()
}

// pageOf requests a page and returns its status and its text.
func pageOf(t *testing.T, url string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// rateLimitClient is a client of Envoy's rate limit service.
func rateLimitClient(t *testing.T, at string) ratelimitv3.RateLimitServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return ratelimitv3.NewRateLimitServiceClient(conn)
}

// TestServerDecides asks the rate limit service over gRPC and as JSON, and finds the hits in the
// metrics, under the names of Envoy's service.
func TestServerDecides(t *testing.T) {
	t.Parallel()
	i := launchServer(t, file(t, decisionService+`domains:
  shop:
    descriptors:
      - key: client
        limits: 2/1h
        descriptors: [{key: path, value: "/a*", limits: 1/1h, algorithm: token_bucket}]
`))
	client := rateLimitClient(t, i.GRPC)
	one := &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "client", Value: "a"}}},
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "client", Value: "b"}, {Key: "path", Value: "/a/b"}}},
	}}
	for n, want := range []ratelimitv3.RateLimitResponse_Code{ratelimitv3.RateLimitResponse_OK, ratelimitv3.RateLimitResponse_OVER_LIMIT} {
		got, err := client.ShouldRateLimit(t.Context(), one)
		if err != nil || got.GetOverallCode() != want || got.GetStatuses()[0].GetLimitRemaining() != uint32(1-n) {
			t.Errorf("call %d: got %v, %v, want %s", n+1, got, err, want)
		}
	}
	for text, want := range map[string]int{
		`{"domain":"shop","descriptors":[{"entries":[{"key":"client","value":"a"}]}]}`: http.StatusTooManyRequests,
		`{"domain":"shop","descriptors":[{"entries":[{"key":"other","value":"a"}]}]}`:  http.StatusOK,
		`{"domain":"shop"}`:              http.StatusBadRequest,
		`{"domian":"shop"}`:              http.StatusBadRequest,
		strings.Repeat(" ", 1025) + "{}": http.StatusRequestEntityTooLarge,
	} {
		answer, err := http.Post("http://"+i.HTTP+"/json", "application/json", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%.80s: status %d, want %d", text, answer.StatusCode, want)
		}
	}
	_, metrics := pageOf(t, "http://"+i.Admin+"/metrics")
	for _, line := range []string{
		`ratelimit_service_rate_limit_total_hits{domain="shop",key1="client"} 3`,
		`ratelimit_service_rate_limit_over_limit{domain="shop",key1="client"} 1`,
		`ratelimit_service_rate_limit_within_limit{domain="shop",key1="client",key2="path_/a*"} 1`,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 5`,
		`ratelimit_service_should_rate_limit_error{err_type="service_error"} 2`,
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 5`,
	} {
		if !strings.Contains(metrics, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}
