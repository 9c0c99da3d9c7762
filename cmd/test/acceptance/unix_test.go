package acceptance

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const unixConfiguration = `version: 1
max_memory: 16MiB
identity: {trusted_proxies: [%s]}
rules:
  - {name: client, match: {path: /limited}, key: [xff_ip], limits: ["1/1h"]}
proxy:
  listen: "unix:%s"
  upstream: "%%s"
`

// serveUnix is an upstream on a Unix socket.
func serveUnix(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "up.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { server.Close() })
	return "unix:" + path
}

// TestUnixSockets uses Unix sockets on both sides, so no port is open. Peers have no address;
// trusted peers name their clients.
func TestUnixSockets(t *testing.T) {
	t.Parallel()
	upstream := serveUnix(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for=%s %s", r.Host, r.Header.Get("X-Forwarded-For"), r.RequestURI)
	}))
	for trusted, c := range map[string]struct{ first, second string }{
		"unix":       {"203.0.113.7", "HTTP/1.1 200 OK"},
		"10.0.0.0/8": {"", "HTTP/1.1 429 Too Many Requests"},
	} {
		socket := filepath.Join(t.TempDir(), "in.sock")
		i := start(t, fmt.Sprintf(unixConfiguration, trusted, socket), upstream)
		if i.Proxy != socket {
			t.Errorf("it serves on %q, want %q", i.Proxy, socket)
		}
		if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
			t.Errorf("the socket's mode is %v: %v", info.Mode(), err)
		}
		head, body := curl(t, "--unix-socket", socket, "-H", "X-Forwarded-For: 203.0.113.7", "http://api.example/limited?a=%zz")
		if want := "api.example for=" + c.first + " /limited?a=%zz"; head[0] != "HTTP/1.1 200 OK" || body != want {
			t.Errorf("trusting %s: %q %q, want %q", trusted, head, body, want)
		}
		if head, _ := curl(t, "--unix-socket", socket, "-H", "X-Forwarded-For: 203.0.113.8", "http://api.example/limited"); head[0] != c.second {
			t.Errorf("trusting %s: another client is answered %q, want %q", trusted, head[0], c.second)
		}
		if head, _ := curl(t, "--unix-socket", socket, "--http2-prior-knowledge", "http://api.example/free"); head[0] != "HTTP/2 200 " {
			t.Errorf("HTTP/2: %q", head)
		}
		if status := i.stop(); status != 0 {
			t.Errorf("exit status %d\n%s", status, i.text())
		}
		if _, err := os.Lstat(socket); !os.IsNotExist(err) {
			t.Errorf("the socket is left behind: %v", err)
		}
	}
}

// TestUnixSocketLeftBehind: the socket of a killed process is replaced. A socket in use, or
// another file, is not replaced.
func TestUnixSocketLeftBehind(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "in.sock")
	configuration := fmt.Sprintf(unixConfiguration, "unix", socket)
	upstream := serveUnix(t, page())
	first := start(t, configuration, upstream)
	path := file(t, fmt.Sprintf(configuration, upstream)+adminAnywhere)
	if status, _, stderr := call(t, "proxy", "--config", path); status != 1 || !strings.Contains(stderr, "another process serves") {
		t.Errorf("a second one ends with %d: %s", status, stderr)
	}
	if err := first.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	if _, err := os.Lstat(socket); err != nil {
		t.Fatalf("a killed process leaves its socket: %v", err)
	}
	second := start(t, configuration, upstream)
	if head, _ := curl(t, "--unix-socket", socket, "http://a/"); head[0] != "HTTP/1.1 200 OK" {
		t.Errorf("after a kill: %q", head)
	}
	second.stop()
	if err := os.WriteFile(socket, []byte("a letter"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, "proxy", "--config", path); status != 2 || !strings.Contains(stderr, "not a socket") {
		t.Errorf("before a file it ends with %d: %s", status, stderr)
	}
	if text, _ := os.ReadFile(socket); string(text) != "a letter" {
		t.Errorf("the file holds %q now", text)
	}
}
