package gateway

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/internal/testkit/process"
)

// service is what a gateway protects.
type service struct {
	at   string
	path atomic.Pointer[string] // the path of the last request
	body atomic.Int64           // the length of its body
	// tokens counts the requests with a Headgate-Token, which belongs to headgate server.
	tokens atomic.Int64
	header atomic.Pointer[http.Header] // of the last request
}

func startService(t *testing.T) *service {
	t.Helper()
	s := &service{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body) // The test compares the length.
		s.path.Store(&r.URL.Path)
		s.header.Store(&r.Header)
		s.body.Store(n)
		if r.Header[access.TokenField] != nil {
			s.tokens.Add(1)
		}
		if r.URL.Path == "/forbidden" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	s.at = server.Listener.Addr().String()
	return s
}

// start starts the gateway between its clients, headgate server and the service, until it answers a request with a status. It
// returns its address.
func (g *Gateway) start(t *testing.T, headgate, service string, status int) (at string) {
	t.Helper()
	at = process.FreeAddress(t)
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer("127.0.0.1:8000", at, "http://:8000", "http://:"+port, "127.0.0.1:8080", headgate,
		"127.0.0.1:9000", service, "bind 127.0.0.1\n", "bind "+host+"\n")
	folder := t.TempDir()
	for _, name := range g.Files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(replace.Replace(example(t, name))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	words := []string{"-C", folder, "HOME=" + folder, g.Program}
	for _, word := range g.Words {
		words = append(words, replace.Replace(word))
	}
	log := filepath.Join(folder, "log")
	running, err := process.Launch(log, "env", words)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		running.Kill()
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("%s at %s:\n%s", g.Name, at, text)
		}
	})
	g.await(t, at, status, running)
	return at
}

// await waits until the gateway answers with a status. Traefik listens before it has read its file, and then answers 404.
func (g *Gateway) await(t *testing.T, at string, status int, running *process.Process) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	last := 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline) && running.Running(); <-tick.C {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", at)
		if err != nil {
			continue
		}
		_ = conn.Close()
		if last = newClient(at, "127.0.0.13").send(t, "GET", "/", "").status; last == status {
			return
		}
	}
	t.Fatalf("%s does not answer %d: the last status is %d", g.Name, status, last)
}
