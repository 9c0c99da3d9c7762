package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const forgedConfiguration = `version: 1
max_memory: 16MiB
identity:
  trusted_proxies: [%s]
  user_ip_headers: [X-Real-User-Ip]
rules:
  - {name: chain, match: {path: /chain}, key: [xff_ip], limits: ["1/1h"]}
  - {name: user, match: {path: /user}, key: [user_ip], limits: ["1/1h"]}
  - {name: peer, match: {path: /peer}, key: [ip], limits: ["1/1h"]}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// TestForgedByClient: the headers of a client with an untrusted peer do not change its identity,
// and do not reach the service.
func TestForgedByClient(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, fmt.Sprintf(forgedConfiguration, "10.0.0.0/8"), behind.url)
	for _, path := range []string{"/chain", "/user", "/peer"} {
		for n, forged := range []string{
			"X-Nothing: 1",
			"X-Forwarded-For: 203.0.113.1",
			"x-forwarded-for: 203.0.113.2, 10.0.0.1",
			"X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2",
			"X-Real-User-Ip: 203.0.113.3",
			"Forwarded: for=203.0.113.4;host=evil;proto=https",
			"X-Forwarded-Host: evil\r\nX-Forwarded-Proto: https",
			"X-Forwarded-For: 127.0.0.1, 127.0.0.1",
			"X-Forwarded-For: \xff, unknown, <script>",
			"X-Forwarded-For: " + strings.Repeat("203.0.113.5, ", 4000) + "203.0.113.5",
			"Connection: X-Forwarded-For, X-Real-User-Ip\r\nX-Forwarded-For: 203.0.113.6",
			"X_Forwarded_For: 203.0.113.7",
			"X-Forwarded-For : 203.0.113.8",
		} {
			w := dial(t, "tcp", i.Proxy)
			w.send(request("GET "+path+" HTTP/1.1", "Host: a", forged, "X-End: 1"))
			want := http.StatusTooManyRequests
			switch {
			case n == 0:
				want = http.StatusOK
			case strings.Contains(forged, " :"):
				want = http.StatusBadRequest
			}
			if got := w.answer(); statusOr0(got) != want {
				t.Errorf("%s with %.60q: %d, want %d", path, forged, statusOr0(got), want)
			}
			// On a path without a rule, the service shows the headers that it gets.
			w = dial(t, "tcp", i.Proxy)
			w.send(request("GET /free HTTP/1.1", "Host: a", forged, "X-End: 1"))
			w.answer()
			for _, r := range behind.take() {
				heard := []string{r.one("x-forwarded-for"), r.one("x-forwarded-host"), r.one("x-forwarded-proto"), r.one("forwarded")}
				if strings.Join(heard, " ") != `127.0.0.1 a http 0 fields forwarded: []` {
					t.Errorf("with %.60q the service hears %q", forged, heard)
				}
			}
		}
	}
}

// TestForgedBehindBalancer: behind a trusted balancer, the client that the balancer names is
// counted. Earlier entries in the chain, which the client wrote, change nothing. A Connection
// header that removes the chain has no effect, even through the balancer.
func TestForgedBehindBalancer(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, fmt.Sprintf(forgedConfiguration, "127.0.0.0/8, 10.0.0.0/8"), behind.url)
	const named = "203.0.113.7"
	for n, forged := range []string{
		"X-Forwarded-For: " + named,
		"X-Forwarded-For: 198.51.100.1, " + named,
		"X-Forwarded-For: nonsense, \xff, " + named,
		"X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: " + named,
		"X-Forwarded-For: 198.51.100.1, " + named + ", 10.1.2.3, 127.0.0.9",
		"X-Forwarded-For: " + strings.Repeat("198.51.100.1, ", 4000) + named,
		"X-Forwarded-For: " + named + ":4711",
		"X-Forwarded-For: ::ffff:" + named,
		"Connection: X-Forwarded-For\r\nX-Forwarded-For: " + named,
		"Connection: close, x-forwarded-for, X-Real-User-Ip\r\nX-Forwarded-For: 198.51.100.1, " + named,
	} {
		w := dial(t, "tcp", i.Proxy)
		w.send(request("GET /chain HTTP/1.1", "Host: a", forged))
		want := http.StatusTooManyRequests
		if n == 0 {
			want = http.StatusOK
		}
		if got := w.answer(); statusOr0(got) != want {
			t.Errorf("%.60q: %d, want %d", forged, statusOr0(got), want)
		}
		w = dial(t, "tcp", i.Proxy)
		w.send(request("GET /free HTTP/1.1", "Host: a", forged, "X-Real-User-Ip: "+named))
		w.answer()
		for _, r := range behind.take() {
			if chain := r.one("x-forwarded-for"); !strings.Contains(chain, named) || !strings.HasSuffix(chain, ", 127.0.0.1") {
				t.Errorf("with %.60q the service hears of the chain %.200q", forged, chain)
			}
			if r.target == "/free" && r.one("x-real-user-ip") != named {
				t.Errorf("with %.60q the service hears of the user %q", forged, r.one("x-real-user-ip"))
			}
		}
	}
	for n, wish := range []string{"X-A: 1", "Connection: X-Real-User-Ip"} {
		w := dial(t, "tcp", i.Proxy)
		w.send(request("GET /user HTTP/1.1", "Host: a", "X-Real-User-Ip: "+named, wish))
		if got, want := statusOr0(w.answer()), []int{http.StatusOK, http.StatusTooManyRequests}[n]; got != want {
			t.Errorf("the user with %s: %d, want %d", wish, got, want)
		}
	}
}
