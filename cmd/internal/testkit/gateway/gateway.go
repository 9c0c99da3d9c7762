// Package gateway tests the gateways that ask headgate server, with their files of docs/examples/gateways. The module
// cmd/test/traefik shares it with cmd/test/acceptance: the build of Traefik takes minutes.
package gateway

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/network"
)

// patience is longer than any event that these tests wait for.
const patience = 15 * time.Second

// Gateway is a program in front of a service that asks headgate server.
type Gateway struct {
	Name    string
	Files   []string // in docs/examples/gateways
	Program string
	Words   []string // its arguments

	// Announces says that admitted requests get the rate limit fields.
	Announces bool

	// Unreachable is the status of a request when headgate server does not run, and Silent when it does not answer.
	Unreachable, Silent int

	// Untrusted is the status of a request when the gateway is not in trusted_proxies; 0 does not test it.
	Untrusted int
}

// Server is a running headgate server.
type Server struct {
	HTTP string // the address of its HTTP listener
	Stop func() // waits until the server has ended
}

// Launch starts headgate server with a configuration.
type Launch func(t *testing.T, settings string) Server

// Settings returns docs/examples/gateways/headgate.yaml, with addresses on free ports, a rule that refuses with 503, and one that
// no gateway can be counted by.
func Settings(t *testing.T) string {
	t.Helper()
	const admin = "\nadmin: {listen: \"127.0.0.1:0\", health: \"127.0.0.1:0\"}\n"
	const closed = "\n  - {name: closed, match: {path: /closed}, key: [ip], limits: [1/1h], on_exceed: {action: reject, status: 503}}" +
		"\n  - {name: tenant, match: {path: /tenant}, key: ['descriptor:tenant'], limits: [1/1h]}"
	return strings.Replace(example(t, "headgate.yaml"), "127.0.0.1:8080", "127.0.0.1:0", 1) + closed + admin
}

// example reads a file of docs/examples/gateways. A test runs in the folder of its package, three levels below the root.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "examples", "gateways", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Test checks what clients of the gateway see.
func (g *Gateway) Test(t *testing.T, launch Launch) {
	t.Helper()
	headgate := launch(t, Settings(t))
	s := startService(t)
	link := network.New(t, headgate.HTTP)
	at := g.start(t, link.Addr, s.at, http.StatusOK)
	limited, other := newClient(at, "127.0.0.11"), newClient(at, "127.0.0.12")
	for i, want := range []int{200, 200, 429} {
		a := limited.send(t, "GET", "/search/x?q=1", "")
		if a.status != want || (a.header.Get("Retry-After") != "") != (want == http.StatusTooManyRequests) {
			t.Errorf("request %d gets %d, %v, want %d", i, a.status, a.header, want)
		}
		if got := a.header.Get("Ratelimit"); g.Announces && !strings.HasPrefix(got, `"search";r=`) {
			t.Errorf("request %d announces %q", i, got)
		}
	}
	limited.send(t, "GET", "/closed", "")
	if a := limited.send(t, "GET", "/closed", ""); a.status != http.StatusServiceUnavailable && a.status != http.StatusTooManyRequests {
		t.Errorf("a rule refuses with 503, and the client gets %d", a.status)
	}
	if a := limited.send(t, "GET", "/tenant", ""); a.status != http.StatusInternalServerError {
		t.Errorf("a rule counts by a descriptor, and the client gets %d, want 500", a.status)
	}
	s.forge(t, limited)
	s.spoof(t, limited)
	if a := other.send(t, "GET", "/search/x", ""); a.status != http.StatusOK {
		t.Errorf("another client gets %d", a.status)
	}
	body := strings.Repeat("b", 100_000)
	a := limited.send(t, "POST", "/upload", body, "Content-Type: text/plain", "Headgate-Token: forged")
	if a.status != http.StatusOK || s.body.Load() != int64(len(body)) {
		t.Errorf("an upload gets %d, and %d bytes arrive", a.status, s.body.Load())
	}
	if s.tokens.Load() != 0 {
		t.Error("the service gets a token of a client")
	}
	if a := limited.send(t, "GET", "/forbidden", ""); a.status != http.StatusForbidden {
		t.Errorf("a refusal of the service itself becomes %d", a.status)
	}
	if g.Silent != 0 {
		g.silence(t, link, limited)
	}
	if g.Untrusted != 0 {
		g.untrusted(t, launch, s)
	}
	headgate.Stop()
	if a := limited.send(t, "GET", "/search/x", ""); a.status != g.Unreachable {
		t.Errorf("without headgate server the status is %d, want %d", a.status, g.Unreachable)
	}
}

// untrusted starts the gateway with a headgate server that does not trust it. Its clients must not seem to be over a limit.
func (g *Gateway) untrusted(t *testing.T, launch Launch, s *service) {
	t.Helper()
	other := launch(t, strings.Replace(Settings(t), "trusted_proxies: [127.0.0.1]", "trusted_proxies: [192.0.2.1]", 1))
	g.start(t, other.HTTP, s.at, g.Untrusted)
	other.Stop()
}

// silence stops the answers of headgate server. Its connections stay open.
func (g *Gateway) silence(t *testing.T, link *network.Link, limited *client) {
	t.Helper()
	link.NoAnswers()
	if a := limited.send(t, "GET", "/search/x", ""); a.status != g.Silent {
		t.Errorf("when headgate server does not answer, the status is %d, want %d", a.status, g.Silent)
	}
	link.Heal()
}
