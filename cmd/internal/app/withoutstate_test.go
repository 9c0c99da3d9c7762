package app

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/headgate/headgate/internal/config"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// closedPort gives an address where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// proxied is a proxy whose rules are in a source, but for one with a quota.
func proxied(t *testing.T, source string) Options {
	t.Helper()
	o := options(t)
	text := fmt.Sprintf("version: 1\nmax_memory: 1MiB\nsource: %s\nrules: [{name: api, match: {path: /api}, key: [header:X-Customer], quota: calls}]\n"+
		"default_plan: free\nproxy: {listen: '127.0.0.1:0', upstream: %q}\nadmin: {listen: '127.0.0.1:0', health: '127.0.0.1:0'}\n",
		source, o.Config.Proxy.Upstream)
	c, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o.Config = c
	return o
}

// passing counts the requests of n that pass, and wants the status and the reason of the others.
func passing(t *testing.T, at, path, reason string, n int) (passed int) {
	t.Helper()
	for range n {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusOK:
			passed++
		case resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), reason):
			t.Fatalf("%s: got %d with %v and %s, want 503 with Retry-After and %q", path, resp.StatusCode, resp.Header, body, reason)
		}
	}
	return passed
}

// TestWithoutState: a proxy that knows nothing of its source refuses every request, with a reason that metrics show: etcd is unreachable
// and there is no cache, or the cache is damaged. With allow, the file alone decides. A reload changes the setting.
func TestWithoutState(t *testing.T) {
	t.Parallel()
	damaged := filepath.Join(t.TempDir(), "cache")
	if err := os.WriteFile(damaged, []byte(`{"format":"headgate-source-cache-1","source":"x"`), 0o600); err != nil {
		t.Fatal(err)
	}
	etcd := fmt.Sprintf("etcd: {endpoints: [%q]}", "http://"+closedPort(t))
	for name, c := range map[string]struct {
		source       string
		other, quota int
	}{
		"no cache":      {"{" + etcd + "}", 0, 0},
		"refuse":        {"{" + etcd + ", without_state: refuse}", 0, 0},
		"damaged cache": {fmt.Sprintf("{%s, cache: %q}", etcd, damaged), 0, 0},
		"allow":         {"{" + etcd + ", without_state: allow}", 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := proxied(t, c.source)
			o.Load = func() (*config.Config, error) { return proxied(t, "{"+etcd+", without_state: allow}").Config, nil }
			i := startServer(t, o)
			at := i.Addresses().Proxy
			if n := passing(t, at, "/other", "not loaded yet", 20); n != c.other {
				t.Errorf("%d of 20 requests without a rule passed, want %d", n, c.other)
			}
			if n := passing(t, at, "/api", "The client's plan under the policy api is not loaded yet", 5); n != c.quota {
				t.Errorf("%d of 5 requests under a quota passed, want %d", n, c.quota)
			}
			if i.ready() == nil {
				t.Error("the instance is ready")
			}
			text := metricsOf(t, i.Addresses().Health)
			refused := fmt.Sprintf(`headgate_decisions_total{mode="enforce",reason="source_unavailable",rule="(source)",verdict="deny"} %d`, 20-c.other)
			if c.other == 0 && !strings.Contains(text, refused) {
				t.Errorf("the metrics lack %s:\n%s", refused, text)
			}
			if missing := `reason="plan_missing",rule="api",verdict="deny"} 5`; !strings.Contains(text, missing) {
				t.Errorf("the metrics lack %s", missing)
			}
			if err := i.Reload(); err != nil {
				t.Fatal(err)
			}
			if n := passing(t, at, "/other", "", 20); n != 20 {
				t.Errorf("after a reload with allow, %d of 20 requests passed", n)
			}
		})
	}
}

// TestEmptySource: a source that lacks the default plan has requests refused with reasons of their own, and metering counts nothing.
// Once the source has the plan, requests are decided by it.
func TestEmptySource(t *testing.T) {
	t.Parallel()
	d := serveDocument(t, `{"plans": {}, "customers": {}, "rules": {}}`)
	folder := t.TempDir()
	o := proxied(t, fmt.Sprintf("{http: {url: %q, interval: 1s}}", d.URL))
	i := startServer(t, withMetering(t, o, folder))
	at := i.Addresses().Proxy
	if n := passing(t, at, "/api", "The client's plan under the policy api is not loaded yet", 3) + passing(t, at, "/other", "not loaded yet", 3); n != 0 {
		t.Errorf("%d requests passed", n)
	}
	d.set(`{"plans": {"free": {"quotas": {"calls": [{"limit": "2/1d"}]}}}, "customers": {}, "rules": {}}`)
	eventually(t, "the plan", func() bool { return i.ready() == nil })
	if n := passing(t, at, "/other", "", 3); n != 3 {
		t.Errorf("with the plan, %d of 3 requests passed", n)
	}
	if status, _ := get(t, at+"/api"); status != http.StatusOK {
		t.Errorf("with the plan, a request under the quota gets %d", status)
	}
	if err := i.Stop(); err != nil {
		t.Fatal(err)
	}
	lines := ""
	names, err := filepath.Glob(filepath.Join(folder, "lines", "*.jsonl"))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		lines += string(text)
	}
	if err != nil || strings.Count(lines, "\n") != 1 || strings.Contains(lines, `"refused":3`) {
		t.Errorf("metering has the lines %s, %v: want one, without the refusals", lines, err)
	}
}

// withMetering gives options with metering into a folder.
func withMetering(t *testing.T, o Options, folder string) Options {
	t.Helper()
	c := *o.Config
	c.Metering = serverConfig(t, fmt.Sprintf("rules: [{name: api, key: [header:X-Customer], quota: calls}]\ndefault_plan: free\n"+
		"plans: {free: {quotas: {calls: [{limit: 2/1d}]}}}\nmetering: {journal: %q, instance: a, lines: {folder: %q}}\n",
		filepath.Join(folder, "journal"), filepath.Join(folder, "lines"))).Metering
	o.Config = &c
	return o
}

// TestFrontsWithoutState: each front of the decision server refuses with the reason.
func TestFrontsWithoutState(t *testing.T) {
	t.Parallel()
	etcd := fmt.Sprintf("source: {etcd: {endpoints: [%q]}}\nrules: []\ndomains: {complete: {descriptors: [{key: k, limits: 5/h}]}}\n", "http://"+closedPort(t))
	i := startServer(t, serverOptions(t, etcd+"server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0', resp: '127.0.0.1:0'}\n"+
		"identity: {trusted_proxies: [127.0.0.1/32]}\n"))
	c := clientsOf(t, i, "")
	if status, header, body := c.post(t); status != http.StatusOK || !strings.Contains(body, `"verdict":"deny"`) || !strings.Contains(body, `"reason":"source_unavailable"`) {
		t.Errorf("POST: got %d %v %s", status, header, body)
	}
	if status, body := forwarded(t, c.http); status != http.StatusServiceUnavailable || !strings.Contains(body, "not loaded yet") {
		t.Errorf("GET: got %d %s", status, body)
	}
	if got := reply(t, c.resp, "HG.DECIDE path=/"); !strings.Contains(got, "source_unavailable") {
		t.Errorf("HG.DECIDE: got %q", got)
	}
	out := new(headgatev1.DecideResponse)
	err := c.grpc.Invoke(t.Context(), "/headgate.v1.Decisions/Decide", &headgatev1.DecideRequest{Requests: []*headgatev1.Request{{Path: "/"}}}, out)
	if err != nil || out.GetAnswers()[0].GetVerdict() != headgatev1.Verdict_VERDICT_DENY || out.GetAnswers()[0].GetReason() != "source_unavailable" {
		t.Errorf("headgate.v1: got %v, %v", out, err)
	}
	for domain, want := range map[string]rlsv3.RateLimitResponse_Code{
		"rules": rlsv3.RateLimitResponse_OVER_LIMIT, "complete": rlsv3.RateLimitResponse_OK,
	} {
		answer, err := rlsv3.NewRateLimitServiceClient(c.grpc).ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{
			Domain: domain, Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}}}},
		})
		if err != nil || answer.GetOverallCode() != want {
			t.Errorf("Envoy's service, domain %s: got %v, %v, want %v", domain, answer, err, want)
		}
	}
	if got := c.commands(t, "CL.THROTTLE k 1 1 60"); got[0] != "*5\r\n" {
		t.Errorf("a limit of the caller: got %q", got)
	}
}

// forwarded asks /v1/decide as a gateway does.
func forwarded(t *testing.T, at string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/v1/decide?from=forwarded", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Method": "GET", "Host": "a", "Uri": "/"} {
		req.Header.Set("X-Forwarded-"+name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// reply gives the whole reply to a command of the Redis protocol.
func reply(t *testing.T, at, command string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, command+"\r\nQUIT\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestProxyStartsWithASource: the objects of a source are in force before the proxy serves.
func TestProxyStartsWithASource(t *testing.T) {
	d := serveDocument(t, `{"plans": {"free": {"quotas": {"calls": [{"limit": "2/1d"}]}}}}`)
	i := startServer(t, proxied(t, fmt.Sprintf("{http: {url: %q}}", d.URL)))
	if status, _ := get(t, i.Addresses().Proxy+"/api"); status != http.StatusOK || i.ready() != nil {
		t.Errorf("got %d, %v", status, i.ready())
	}
}
