package acceptance

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

const twoConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: client
    match: {path: /v1/*}
    key: [header:X-Client-Id]
    limits: ["2/1h"]
  - name: trial
    match: {path: /v1/*}
    key: [ip]
    limits: ["1/1h"]
    mode: shadow
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
  upstream_timeout: 300ms
  read_header_timeout: 500ms
`

// page is an upstream that answers 200.
func page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "fine") })
}

// curl runs curl and gives the lines of the answer's header, and its body.
func curl(t *testing.T, args ...string) (head []string, body string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), tool(t, "curl", "curl"), append([]string{"-sSi", "--path-as-is"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("curl %v: %v\n%s", args, err, out)
	}
	text, body, _ := strings.Cut(string(out), "\r\n\r\n")
	return strings.Split(text, "\r\n"), body
}

func TestWhatACallerSees(t *testing.T) {
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, twoConfiguration, behind.URL)
	url := "http://" + i.Proxy + "/v1/product"
	for n, remaining := range []string{"1", "0"} {
		head, body := curl(t, "-H", "X-Client-Id: a", url)
		if body != "fine\n" || head[0] != "HTTP/1.1 200 OK" {
			t.Fatalf("request %d: %q %q", n, head, body)
		}
		wants(t, head, `Ratelimit-Policy: "client";q=2;w=3600`)
		if !slices.ContainsFunc(head, func(l string) bool { return strings.HasPrefix(l, `Ratelimit: "client";r=`+remaining+`;t=`) }) {
			t.Errorf("request %d has no RateLimit of %s: %q", n, remaining, head)
		}
	}
	head, body := curl(t, "-H", "X-Client-Id: a", url)
	wants(t, head, "HTTP/1.1 429 Too Many Requests", "Content-Type: application/problem+json", "Retry-After: 1800",
		`Ratelimit-Policy: "client";q=2;w=3600`, `Ratelimit: "client";r=0;t=1800`)
	problem(t, body, map[string]any{
		"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota Exceeded",
		"status": 429.0, "reason": "over_limit", "violated-policies": []any{"client"},
	})
	// Another spelling of the path, and HTTP/2, match the same rule.
	for _, args := range [][]string{
		{"http://" + i.Proxy + "//v1/x/%2e%2e/product"},
		{"--http2-prior-knowledge", url},
	} {
		if head, _ := curl(t, append(args, "-H", "X-Client-Id: a")...); !strings.Contains(head[0], " 429") {
			t.Errorf("%v is answered with %s", args, head[0])
		}
	}
	// Other clients have their own limits, and no rule matches other paths.
	if head, _ := curl(t, "-H", "X-Client-Id: b", url); !strings.Contains(head[0], " 200") {
		t.Errorf("another client is answered with %s", head[0])
	}
	if head, _ := curl(t, "http://"+i.Proxy+"/other"); slices.ContainsFunc(head, func(l string) bool { return strings.HasPrefix(l, "Ratelimit") }) {
		t.Errorf("a request without a rule is told of a limit: %q", head)
	}
	if !strings.Contains(i.text(), "serving") {
		t.Error("the log does not say that it serves")
	}
}

func wants(t *testing.T, head []string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if !slices.Contains(head, want) {
			t.Errorf("the answer lacks %q: %q", want, head)
		}
	}
}

func problem(t *testing.T, body string, want map[string]any) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for name, value := range want {
		if fmt.Sprint(got[name]) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	if text, ok := got["detail"].(string); !ok || text == "" {
		t.Error("the problem has no detail")
	}
}

func TestOtherFields(t *testing.T) {
	behind := httptest.NewServer(page())
	defer behind.Close()
	for style, want := range map[string][]string{
		"x-ratelimit": {"X-Ratelimit-Limit: 2", "X-Ratelimit-Remaining: 1", "X-Ratelimit-Reset: 1800"},
		"draft03":     {"Ratelimit-Limit: 2", "Ratelimit-Remaining: 1", "Ratelimit-Reset: 1800"},
		"none":        nil,
	} {
		i := start(t, strings.Replace(twoConfiguration, "upstream_timeout", "header_style: "+style+"\n  upstream_timeout", 1), behind.URL)
		head, _ := curl(t, "-H", "X-Client-Id: a", "http://"+i.Proxy+"/v1/product")
		wants(t, head, want...)
		if n := strings.Count(strings.ToLower(strings.Join(head, "\n")), "ratelimit"); n != len(want) {
			t.Errorf("header_style %s: %d fields, want %d: %q", style, n, len(want), head)
		}
	}
}

// TestUpstreamGone: an upstream that is down or does not answer does not count as a refusal.
func TestUpstreamGone(t *testing.T) {
	const gone = "http://127.0.0.1:1" // No server listens on this port. A free port could be given to another process.
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	for url, want := range map[string]struct {
		status int
		metric string
	}{
		gone:     {502, `headgate_upstream_errors_total{kind="refused"} 1`},
		slow.URL: {504, `headgate_upstream_errors_total{kind="timeout"} 1`},
	} {
		i := start(t, twoConfiguration, url)
		resp, body := get(t, "http://"+i.Proxy+"/v1/product")
		if resp.StatusCode != want.status || resp.Header.Get("Retry-After") != "" {
			t.Errorf("status %d, Retry-After %q, want %d and none", resp.StatusCode, resp.Header.Get("Retry-After"), want.status)
		}
		problem(t, body, map[string]any{"type": "about:blank", "status": want.status})
		_, metrics := get(t, "http://"+i.Health+"/metrics")
		for _, line := range []string{
			want.metric, `headgate_proxy_requests_total{code="5xx"} 1`,
			`headgate_decisions_total{mode="enforce",reason="over_limit",rule="client",verdict="deny"} 0`,
			`headgate_decisions_total{mode="enforce",reason="within_limit",rule="client",verdict="allow"} 1`,
			`headgate_decisions_total{mode="shadow",reason="within_limit",rule="trial",verdict="allow"} 1`,
		} {
			if !strings.Contains(metrics, line+"\n") {
				t.Errorf("the metrics lack %s", line)
			}
		}
	}
}

// TestSlowloris: the proxy disconnects a client that sends its header one byte at a time.
func TestSlowloris(t *testing.T) {
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, twoConfiguration, behind.URL)
	conn, err := net.Dial("tcp", i.Proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	go func() {
		for _, b := range []byte("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: " + strings.Repeat("x", 100)) {
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
			<-time.After(50 * time.Millisecond)
		}
	}()
	_, _ = io.ReadAll(conn)
	if elapsed := time.Since(began); elapsed < 400*time.Millisecond || elapsed > 3*time.Second {
		t.Errorf("cut off after %v, want about 500ms", elapsed)
	}
}

func TestTooManyFields(t *testing.T) {
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, twoConfiguration, behind.URL)
	for size, want := range map[int]int{60 << 10: http.StatusOK, 80 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		if resp, _ := get(t, "http://"+i.Proxy+"/x", "X-Big", strings.Repeat("x", size)); resp.StatusCode != want {
			t.Errorf("%d bytes of fields: status %d, want %d", size, resp.StatusCode, want)
		}
	}
}
