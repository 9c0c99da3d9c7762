package acceptance

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/process"
)

// gateway is a program in front of a service that asks headgate server, with its files of examples/gateways.
type gateway struct {
	name    string
	files   []string
	program string
	words   []string
	// announces says that its answers have the rate limit fields. unreachable is its status without
	// headgate server.
	announces   bool
	unreachable int
}

// TestGateways starts each gateway of Debian with its example. Traefik is not in Debian: see TestTraefik.
func TestGateways(t *testing.T) {
	t.Parallel()
	for _, g := range []gateway{
		{"nginx", []string{"nginx.conf"}, "nginx", []string{"-e", "stderr", "-p", ".", "-c", "nginx.conf", "-g", "daemon off;"}, true, 200},
		{"HAProxy", []string{"haproxy.cfg", "haproxy.lua"}, "haproxy", []string{"-db", "-f", "haproxy.cfg"}, true, 200},
		{"Caddy", []string{"Caddyfile"}, "caddy", []string{"run", "--config", "Caddyfile", "--adapter", "caddyfile"}, false, 502},
	} {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			g.tell(t)
		})
	}
}

// tell tells what clients of the gateway see.
func (g *gateway) tell(t *testing.T) {
	t.Helper()
	r := g.start(t)
	limited, other := r.client(t, "127.0.0.11"), r.client(t, "127.0.0.12")
	for i, want := range []int{200, 200, 429} {
		a := limited.ask(t, "GET", "/search/x?q=1", "")
		if a.status != want || (a.header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("request %d gets %d, %v, want %d", i, a.status, a.header, want)
		}
		if got := a.header.Get("Ratelimit"); g.announces && (i < 2 || want == 429) && !strings.HasPrefix(got, `"search";r=`) {
			t.Errorf("request %d announces %q", i, got)
		}
	}
	r.forge(t, limited)
	if a := other.ask(t, "GET", "/search/x", ""); a.status != 200 {
		t.Errorf("another client gets %d", a.status)
	}
	body := strings.Repeat("b", 100_000)
	if a := limited.ask(t, "POST", "/upload", body, "Content-Type: text/plain"); a.status != 200 || r.body.Load() != int64(len(body)) {
		t.Errorf("an upload gets %d, and %d bytes arrive", a.status, r.body.Load())
	}
	if a := limited.ask(t, "GET", "/forbidden", ""); a.status != 403 {
		t.Errorf("a refusal of the service itself becomes %d", a.status)
	}
	if err := r.headgate.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-r.headgate.ended
	if a := limited.ask(t, "GET", "/search/x", ""); a.status != g.unreachable {
		t.Errorf("without headgate server the status is %d, want %d", a.status, g.unreachable)
	}
}

// forge sends what a client could gain by.
func (r *guarded) forge(t *testing.T, limited *gatewayClient) {
	t.Helper()
	for _, fields := range [][]string{
		{"X-Forwarded-For: 198.51.100.1"},
		{"x-forwarded-for: 198.51.100.1", "X-FORWARDED-FOR: 198.51.100.2"},
		{"X-Original-URI: /free"},
		{"x-original-uri: /free", "X-Original-Uri: /free"},
		{"X-Forwarded-Uri: /free"},
		{"X-Original-Method: OPTIONS", "X-Forwarded-Method: OPTIONS"},
		{"X-Original-Host: free.example", "X-Forwarded-Host: free.example"},
		{"Forwarded: for=198.51.100.1"},
		{"X-Real-IP: 198.51.100.1"},
		{"Content-Type: application/grpc"},
		{"Connection: X-Original-URI, X-Forwarded-For, X-Forwarded-Uri, X-Original-Method"},
		{"Expect: 100-continue"},
	} {
		for _, method := range []string{"GET", "POST"} {
			if a := limited.ask(t, method, "/search/x", "", fields...); a.status != 429 {
				t.Errorf("%s with %v gets %d", method, fields, a.status)
			}
		}
	}
	for _, target := range []string{
		"//search/x", "/search//x", "/x/../search/x", "/search/./x", "/./search/x", "/%73earch/x", "/search/x/../y", "/x/%2e%2e/search/x",
		"/x/.%2E/search/x", "/search%2fx", "/x/..;/search/x", "/search/x;a=b", `/x\..\search/x`, "/search/x?/../../free", "/search/x#/free",
		"http://free.example/search/x", "/%2e/search/x", "/free/..%2fsearch/x", "//free/../search/x",
	} {
		r.seen.Store("")
		a := limited.ask(t, "GET", target, "")
		seen := r.seen.Load().(string)
		if clean := path.Clean("/" + seen); a.status == http.StatusOK && (seen == "" || strings.HasPrefix(clean, "/search")) {
			t.Errorf("%s gets %d, and the service sees %q", target, a.status, seen)
		}
	}
	for _, host := range []string{"A.example", "a.example.", "a.example:80", "xn--bcher-kva.example", "127.0.0.1"} {
		if a := limited.ask(t, "GET", "/search/x", "", "Host: "+host); a.status != 429 {
			t.Errorf("the host %s gets %d", host, a.status)
		}
	}
}

// guarded is a service behind a gateway.
type guarded struct {
	at       string
	headgate *instance
	seen     atomic.Value // the last path that the service got
	body     atomic.Int64 // the length of the last body
}

// start starts the service, headgate server and the gateway.
func (g *gateway) start(t *testing.T) *guarded {
	t.Helper()
	r := &guarded{}
	r.seen.Store("")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		n, _ := io.Copy(io.Discard, q.Body)
		r.seen.Store(q.URL.Path)
		r.body.Store(n)
		if q.URL.Path == "/forbidden" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(service.Close)
	folder := filepath.Join("..", "..", "examples", "gateways")
	settings, err := os.ReadFile(filepath.Join(folder, "headgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r.headgate = launchServer(t, file(t, strings.Replace(string(settings), "127.0.0.1:8080", "127.0.0.1:0", 1)+adminAnywhere))
	r.at = freeAddress(t)
	dir := t.TempDir()
	host, port, err := net.SplitHostPort(r.at)
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer("127.0.0.1:8000", r.at, "http://:8000", "http://:"+port, "127.0.0.1:8080", r.headgate.HTTP,
		"127.0.0.1:9000", service.Listener.Addr().String(), "bind 127.0.0.1\n", "bind "+host+"\n")
	for _, name := range g.files {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(replace.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	words := append([]string{"-C", dir, "HOME=" + dir, g.program}, g.words...)
	running, err := process.Launch(filepath.Join(dir, "log"), "env", words)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		running.Kill()
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("%s at port %s:\n%s", g.name, port, text)
		}
	})
	eventually(t, g.name, func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", r.at)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return r
}

// freeAddress gives an address that no outgoing connection takes: these begin at 127.0.0.1.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.21:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// gatewayClient sends requests as they are written, from one address.
type gatewayClient struct {
	dialer net.Dialer
	at     string
}

func (r *guarded) client(t *testing.T, from string) *gatewayClient {
	t.Helper()
	return &gatewayClient{net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}, r.at}
}

// gatewayAnswer is what a client of a gateway sees.
type gatewayAnswer struct {
	status int
	header http.Header
}

// ask sends a request on a connection of its own. A field Host replaces the usual one.
func (c *gatewayClient) ask(t *testing.T, method, target, body string, fields ...string) gatewayAnswer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := c.dialer.DialContext(ctx, "tcp", c.at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if !strings.HasPrefix(strings.Join(fields, "\n"), "Host: ") {
		fields = append([]string{"Host: a.example"}, fields...)
	}
	text := method + " " + target + " HTTP/1.1\r\n" + strings.Join(fields, "\r\n") + "\r\n"
	if body != "" || method == "POST" {
		text += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if _, err := io.WriteString(conn, text+"\r\n"+body); err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	answers := bufio.NewReader(conn)
	for {
		answer, err := http.ReadResponse(answers, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s %s: %v", method, target, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode >= http.StatusOK { // An answer 100 comes before.
			return gatewayAnswer{answer.StatusCode, answer.Header}
		}
	}
}

// traefikAsks is a subrequest of Traefik's forwardAuth, in the form that its code writes: the fields of the client,
// without those of the connection, and its own X-Forwarded-*.
const traefikAsks = "GET /v1/decide?from=forwarded HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: curl/8\r\nAccept: */*\r\n" +
	"X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Host: a.example\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Port: 8000\r\n" +
	"X-Forwarded-Proto: http\r\nX-Forwarded-Uri: /search/x?q=1\r\nX-Original-Uri: /free\r\nAccept-Encoding: gzip\r\n\r\n"

// TestTraefik sends a subrequest as Traefik does.
func TestTraefik(t *testing.T) {
	t.Parallel()
	settings, err := os.ReadFile(filepath.Join("..", "..", "examples", "gateways", "headgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	i := launchServer(t, file(t, strings.Replace(string(settings), "127.0.0.1:8080", "127.0.0.1:0", 1)+adminAnywhere))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", i.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	answers := bufio.NewReader(conn)
	for n, want := range []int{204, 204, 429} {
		if _, err := io.WriteString(conn, traefikAsks); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != want || (answer.Header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("subrequest %d gets %d, %v", n, answer.StatusCode, answer.Header)
		}
	}
}
