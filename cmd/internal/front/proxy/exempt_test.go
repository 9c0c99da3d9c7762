package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/testkit/rawhttp2"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// scoped configures a proxy that shares 4 units per second among named clients, only for
// /api/*, and exempts probes. The rule does not count requests that fair share exempts.
func scoped(t *testing.T, folds rule.Folds) func(*Config) {
	t.Helper()
	f, err := guard.NewFairShare(4, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	f.Match = rule.Match{Path: "/api/*"}
	f.Exempt = guard.Exempt{
		Paths: []string{"/api/healthz", "/api/probes/*"}, Methods: []string{"OPTIONS"},
		Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32"), netip.MustParsePrefix("10.1.0.0/16")},
	}
	g, err := guard.New(guard.Config{
		FairShare: f, Folds: folds, Store: allowed(), Clock: func() headgate.Instant { return 1e9 },
		Identity: &rule.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.Guard = g }
}

// saysPath is a service that responds with the method and the path of the request.
func saysPath(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, r.Method+" "+r.RequestURI)
}

// talkFrom is talk from the given local address.
func talkFrom(t *testing.T, from, at, sent string) string {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 20 * time.Second}
	conn, err := dialer.DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, sent)
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// The peers of the connections below: a client, an exempt address, and a trusted proxy.
const anyone, exempted, trusted = "127.0.0.1", "127.0.0.2", "127.0.0.3"

// spelled is a request and its expected result: the status, and what the service sees.
type spelled struct{ from, line, more, want string }

// probes are requests that fair share exempts.
var probes = []spelled{
	{anyone, "GET /api/healthz", "", "200 GET /api/healthz"},
	{anyone, "GET /api/healthz?full=1", "", "200 GET /api/healthz?full=1"},
	{anyone, "GET /api/probes/a", "", "200 GET /api/probes/a"},
	{anyone, "OPTIONS /api/x", "", "200 OPTIONS /api/x"},
	{exempted, "GET /api/x", "", "200 GET /api/x"},
	{anyone, "GET /healthz", "", "200 GET /healthz"},
	{anyone, "GET /healthz", "X-Client-Id: a\r\n", "200 GET /healthz"},
	{anyone, "GET /api/healthz", "X-Client-Id: a\r\n", "200 GET /api/healthz"},
	{exempted, "GET /api/x", "X-Client-Id: a\r\n", "200 GET /api/x"},
	// The service receives the path that fair share compared.
	{anyone, "GET //api//healthz", "", "200 GET /api/healthz"},
	{anyone, "GET /api/x/../healthz", "", "200 GET /api/healthz"},
	{anyone, "GET /api/%68ealthz", "", "200 GET /api/%68ealthz"}, // The service decodes the path in the same way.
	{anyone, "GET http://b/api/healthz", "", "200 GET /api/healthz"},
	{anyone, "POST /grpc.health.v1.Health/Check", "Content-Type: application/grpc\r\nContent-Length: 0\r\n", "200 POST /grpc.health.v1.Health/Check"},
}

// lookalikes resemble probes, or requests outside match, but are neither. No lookalike
// names a client.
var lookalikes = []spelled{
	{anyone, "GET /api/x", "", "429"},
	{anyone, "GET /api/healthz/../x", "", "429"},
	{anyone, "GET /api/healthz/..", "", "429"},
	{anyone, "GET /api/healthz/", "", "429"},
	{anyone, "GET /api/healthz/x", "", "429"},
	{anyone, "GET /api/healthz%2f..%2fx", "", "400"},
	{anyone, "GET /api/healthz/..%2fx", "", "400"},
	{anyone, "GET /api/healthz/%2e%2e/x", "", "429"},
	{anyone, "GET /api/healthz%2fx", "", "429"},
	{anyone, "GET /api/healthz%00", "", "400"},
	{anyone, "GET /api/healthz%20", "", "429"},
	{anyone, "GET /api/healthz%23", "", "429"},
	{anyone, "GET /api/healthz%3fx", "", "429"},
	{anyone, "GET /api/healthz%252f", "", "429"},
	{anyone, "GET /api/healthz;x", "", "429"},
	{anyone, "GET /api/healthz%3bx", "", "429"},
	{anyone, "GET /api/healthz;/../x", "", "429"},
	{anyone, "GET /api/healthz/..;/x", "", "400"},
	{anyone, "GET /api/healthz\\..\\x", "", "400"},
	{anyone, "GET /api/HEALTHZ", "", "429"},
	{anyone, "GET /api/probes/../x", "", "429"},
	{anyone, "GET /api/probesx", "", "429"},
	{anyone, "GET //api/x", "", "429"},
	{anyone, "GET /./api/x", "", "429"},
	{anyone, "GET /x/../api/x", "", "429"},
	{anyone, "GET /%61pi/x", "", "429"},
	{anyone, "GET /api%2fx", "", "429"},
	{anyone, "GET /x/..;/api/x", "", "400"},
	{anyone, "GET http://b/api/x", "", "429"},
	{anyone, "GET http://b//api/x", "", "429"},
	{anyone, "HEAD /api/x", "", "429"},
	{anyone, "POST /api/x", "", "429"},
	{anyone, "options /api/x", "", "429"},
	{anyone, "OPTIONSX /api/x", "", "429"},
	{anyone, "GET /api/x", "X-Client-Id:\r\n", "429"},
	{anyone, "GET /api/x", "X-Client-Id: \t\r\n", "429"},
	{anyone, "GET /api/x", "X-Forwarded-For: 10.1.2.3\r\n", "429"},
	{anyone, "GET /api/x", "X-Forwarded-For: 127.0.0.2\r\nForwarded: for=10.1.2.3\r\nX-Real-Ip: 10.1.2.3\r\n", "429"},
	{trusted, "GET /api/x", "X-Forwarded-For: 10.1.2.3\r\n", "429"}, // The peer is the trusted proxy.
	{anyone, "GET /api/x", "X-Original-Url: /api/healthz\r\nX-Http-Method-Override: OPTIONS\r\n", "429"},
}

// foldedProbes go to a service that ignores case, a trailing slash, and path parameters.
var foldedProbes = []spelled{
	{anyone, "GET /api/HEALTHZ", "", "200 GET /api/HEALTHZ"},
	{anyone, "GET /api/healthz/", "", "200 GET /api/healthz/"},
	{anyone, "GET /api;a=b/healthz;x", "", "200 GET /api;a=b/healthz;x"},
	{anyone, "GET /API/x", "", "429"},
	{anyone, "GET /api;x/x", "", "429"},
	{anyone, "GET /;/api/x", "", "429"},
	{anyone, "GET /api/healthz;/x", "", "429"},
	{anyone, "GET /api/healthz;/../x", "", "429"},
	{anyone, "GET /api/healthz/..;/x", "", "400"},
	// Parameters begin at a literal semicolon. An escaped semicolon belongs to the segment.
	{anyone, "GET /api/healthz%3bx", "", "400"},
	{anyone, "GET /api/%3Borders/healthz", "", "400"},
	{anyone, "GET /%3b/api/x", "", "400"},
}

// TestProbesPassFairShare checks that requests outside match, and exempt requests, reach
// the service uncounted. Anonymous requests in any other spelling are refused or malformed.
func TestProbesPassFairShare(t *testing.T) {
	for name, c := range map[string]struct {
		folds rule.Folds
		rows  []spelled
	}{
		"probes":     {rule.Folds{}, probes},
		"lookalikes": {rule.Folds{}, lookalikes},
		"folded":     {rule.Folds{Case: true, TrailingSlash: true, Parameters: true}, foldedProbes},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, allowed(), http.HandlerFunc(saysPath), scoped(t, c.folds))
			for _, row := range c.rows {
				row.check(t, strings.TrimPrefix(f.url, "http://"))
			}
			if shares, ok := f.guard.Shares(); !ok || shares.Admitted != 0 {
				t.Errorf("fair share counts %d units of exempt requests, want 0", shares.Admitted)
			}
		})
	}
}

// check sends the request and compares the response.
func (c spelled) check(t *testing.T, at string) {
	t.Helper()
	answer := talkFrom(t, c.from, at, c.line+" HTTP/1.1\r\nHost: a\r\n"+c.more+"Connection: close\r\n\r\n")
	status, rest, _ := strings.Cut(strings.TrimPrefix(answer, "HTTP/1.1 "), " ")
	if _, body, _ := strings.Cut(rest, "\r\n\r\n"); status == "200" {
		status += " " + body
	}
	if status != c.want {
		t.Errorf("from %s, %s %q: got %s, want %s", c.from, c.line, c.more, status, c.want)
	}
}

// TestGRPCProbesPassFairShare checks exemptions before an HTTP/2 service. gRPC health calls
// pass, and calls with any other spelling do not.
func TestGRPCProbesPassFairShare(t *testing.T) {
	behind := httptest.NewUnstartedServer(http.HandlerFunc(saysPath))
	behind.Config.Protocols = new(http.Protocols)
	behind.Config.Protocols.SetUnencryptedHTTP2(true)
	behind.Start()
	t.Cleanup(behind.Close)
	f, err := guard.NewFairShare(4, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{FairShare: f, ForwardsGRPC: true, Store: allowed(), Clock: func() headgate.Instant { return 1e9 }})
	if err != nil {
		t.Fatal(err)
	}
	upstream := parsed(t, strings.Replace(behind.URL, "http:", "h2c:", 1))
	_, at := start(t, before(t, UpstreamConfig{URL: upstream}, func(c *Config) { c.Guard = g }), nil, ServerConfig{})
	const check = "/grpc.health.v1.Health/Check"
	for _, c := range []struct{ method, path, kind, more, want string }{
		{"POST", check, "application/grpc", "", "pass"},
		{"POST", check, "application/grpc+proto", "", "pass"},
		{"POST", "/grpc.health.v1.Health/Watch", "application/grpc", "", "pass"},
		{"POST", "/x/../grpc.health.v1.Health/Check", "application/grpc", "", "pass"}, // The service sees Check.
		{"POST", "/shop.v1.Orders/Place", "application/grpc", "", "refused"},
		{"POST", check + "/../../shop.v1.Orders/Place", "application/grpc", "", "refused"},
		{"POST", check + "/", "application/grpc", "", "refused"},
		{"POST", check + "%2f", "application/grpc", "", "refused"},
		{"POST", check + ";x", "application/grpc", "", "refused"},
		{"POST", "/grpc.health.v1.health/check", "application/grpc", "", "refused"},
		{"POST", "/grpc.health.v1.Health/CheckX", "application/grpc", "", "refused"},
		{"GET", check, "application/grpc", "", "refused"},
		{"POST", check, "application/grpc-web", "", "refused"},
		{"POST", check, "text/html", "application/grpc", "refused"},
	} {
		pairs := []string{":method", c.method, ":scheme", "http", ":path", c.path, ":authority", "a", "content-type", c.kind}
		if c.more != "" {
			pairs = append(pairs, "content-type", c.more)
		}
		answer, got := rawhttp2.Send(t, at, nil, pairs...), "pass"
		if answer[":status"] == "429" || answer["grpc-status"] == "8" {
			got = "refused"
		}
		if got != c.want {
			t.Errorf("%s %s as %s: got %s, want %s: %v", c.method, c.path, c.kind, got, c.want, answer)
		}
	}
	if shares, _ := g.Shares(); shares.Admitted != 0 {
		t.Errorf("fair share counts %d exempt calls, want 0", shares.Admitted)
	}
}

// TestShareMatchReadsHostsAndHeaders checks a proxy in which only the fair share's match
// reads the host and a header. A header with two values is malformed.
func TestShareMatchReadsHostsAndHeaders(t *testing.T) {
	f, err := guard.NewFairShare(4, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	f.Match = rule.Match{Hosts: []string{"a.example"}, Headers: map[string]string{"X-Plan": "free"}}
	g, err := guard.New(guard.Config{FairShare: f})
	if err != nil {
		t.Fatal(err)
	}
	served := serve(t, allowed(), http.HandlerFunc(saysPath), func(c *Config) { c.Guard = g })
	for more, want := range map[string]string{
		"Host: a.example\r\nX-Plan: free\r\n":                 "429",
		"Host: A.example.:80\r\nX-Plan: free\r\n":             "429",
		"Host: b.example\r\nX-Plan: free\r\n":                 "200",
		"Host: a.example\r\nX-Plan: paid\r\n":                 "200",
		"Host: a.example\r\nX-Plan: paid\r\nX-Plan: free\r\n": "400",
	} {
		status, _ := raw(t, strings.TrimPrefix(served.url, "http://"), "GET /x HTTP/1.1\r\n"+more+"Connection: close\r\n\r\n")
		if status != want {
			t.Errorf("%q: got %s, want %s", more, status, want)
		}
	}
}
