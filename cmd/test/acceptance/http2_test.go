package acceptance

import (
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// quiet discards its log, because a test aborts connections on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

const countedConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: all, match: {path: /v1/*}, key: [all], limits: ["500/1d"]}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
`

// countNew counts the new connections of a server.
func countNew(n *atomic.Int64) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
}

// output runs a program and gives its output.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), tool(t, program, "nghttp2-client"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// TestHTTP2Load sends a thousand requests over many HTTP/2 streams, with TLS and with prior
// knowledge. Exactly 500 pass, and the others are refused without errors.
func TestHTTP2Load(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.issue(t, "proxy.example", 2)
	secured := strings.Replace(countedConfiguration, "  upstream", fmt.Sprintf("  tls: {cert: %s, key: %s}\n  upstream", server.cert, server.key), 1)
	for scheme, c := range map[string]struct{ configuration, protocol string }{
		"https": {secured, `Application protocol: h2\n`},
		"http":  {countedConfiguration, `Application protocol: h2c\n`},
	} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			var arrived atomic.Int64
			behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				arrived.Add(1)
				_, _ = io.WriteString(w, "fine")
			}))
			defer behind.Close()
			i := start(t, c.configuration, behind.URL)
			url := scheme + "://" + i.Proxy + "/v1/product"
			began := time.Now()
			out := output(t, "h2load", "-n", "1000", "-c", "8", "-m", "20", url)
			for _, want := range []string{
				c.protocol, `1000 total, 1000 started, 1000 done, 500 succeeded, 500 failed, 0 errored, 0 timeout`,
				`status codes: 500 2xx, 0 3xx, 500 4xx, 0 5xx`,
			} {
				if !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("h2load does not say %q:\n%s", want, out)
				}
			}
			if arrived.Load() != 500 {
				t.Errorf("%d requests reached the upstream, want 500", arrived.Load())
			}
			// An HTTP/2 client shows the other fields of a refusal.
			out = output(t, "nghttp", "-v", "--no-verify-peer", url)
			for _, want := range []string{
				`:status: 429`, `ratelimit-policy: "all";q=500;w=86400`,
				`content-type: application/problem\+json`, `"violated-policies":\["all"\]`,
			} {
				if !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("nghttp does not say %q:\n%s", want, out)
				}
			}
			wantWait(t, out, time.Since(began))
			// A path without a rule is served.
			if out := output(t, "nghttp", "-v", "--no-verify-peer", scheme+"://"+i.Proxy+"/free"); !strings.Contains(out, ":status: 200") {
				t.Errorf("nghttp is not served:\n%s", out)
			}
		})
	}
}

// wantWait checks the retry time of a refusal. The bucket of 500 a day has its next unit 172.8 s
// after the first request, which was at most ago before.
func wantWait(t *testing.T, out string, ago time.Duration) {
	t.Helper()
	said := regexp.MustCompile(`(?s)ratelimit: "all";r=0;t=(\d+)\b.*retry-after: (\d+)\b`).FindStringSubmatch(out)
	if len(said) != 3 || said[1] != said[2] {
		t.Errorf("nghttp does not say one time to wait: %q in\n%s", said, out)
		return
	}
	wait, err := strconv.Atoi(said[1])
	if least := int(math.Ceil(172.8 - ago.Seconds())); err != nil || wait < least || wait > 173 {
		t.Errorf("wait %d s: want %d to 173", wait, least)
	}
}

// TestUpstreamH2C: an upstream with h2c gets HTTP/2 over few connections, whatever protocol the
// clients use.
func TestUpstreamH2C(t *testing.T) {
	t.Parallel()
	var arrived, connections atomic.Int64
	behind := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprint(w, r.Proto, " ", r.Header.Get("X-Forwarded-For"))
		w.Header().Set("X-Sum", "42")
	}))
	behind.Config.Protocols = new(http.Protocols)
	behind.Config.Protocols.SetUnencryptedHTTP2(true)
	behind.Config.ConnState = countNew(&connections)
	behind.Start()
	defer behind.Close()
	i := start(t, countedConfiguration, strings.Replace(behind.URL, "http:", "h2c:", 1))
	for _, args := range [][]string{{"--http1.1"}, {"--http2-prior-knowledge"}} {
		head, body := curl(t, append(args, "-H", "TE: trailers", "http://"+i.Proxy+"/")...)
		if !strings.Contains(head[0], " 200") || !strings.Contains(body, "HTTP/2.0 127.0.0.1") {
			t.Errorf("%v: %q %q", args, head, body)
		}
	}
	out := output(t, "h2load", "-n", "1000", "-c", "4", "-m", "10", "http://"+i.Proxy+"/v1/product")
	if !strings.Contains(out, "status codes: 500 2xx, 0 3xx, 500 4xx, 0 5xx") || arrived.Load() != 502 {
		t.Errorf("%d requests arrived, want 502:\n%s", arrived.Load(), out)
	}
	if n := connections.Load(); n > 10 {
		t.Errorf("502 requests took %d connections to the upstream", n)
	}
}
