package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/accesslog"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/rule"
)

// plane is a proxy with its client side and its upstream, of which everything is recorded.
type plane struct {
	server   *Server
	traffic  *report.Traffic
	verdicts *verdicts
	lines    *logs.Text
	log      *accesslog.Log
	upstream *recorder
	clients  net.Listener
	accepted chan net.Conn // the connections from clients, if they are sockets
	forget   func()        // closes the idle connections to the upstream
	ending   []func()
}

// planeSetup changes a plane. The zero planeSetup makes a plane in memory.
type planeSetup struct {
	// sockets means real sockets for clients and upstream. service is the unix socket of another
	// upstream than the recorder.
	sockets bool
	service string
	// script serves the upstream connections in place of the recorder's rules.
	script func(net.Conn)
	// tamper breaks a plane, so that a test shows that the comparison finds the fault.
	tamper tampering
	// plain hides all that connections in memory can tell, as the sockets of some systems do.
	plain bool
	// patience replaces the timeouts for clients; 0 means planeTimeouts.
	patience time.Duration
}

// Timeouts of a plane. They never pass in a test of real sockets.
const (
	planeReadHeader = 30 * time.Second
	planeIdle       = 60 * time.Second
	planeBodyIdle   = 40 * time.Second
	planeUpstream   = 35 * time.Second
)

// newPlane starts a plane. Its stop ends it.
func newPlane(tb testing.TB, fast bool, s planeSetup) *plane {
	tb.Helper()
	p := &plane{traffic: new(report.Traffic), verdicts: new(verdicts), lines: new(logs.Text), upstream: &recorder{script: s.script}}
	up, behind := p.startUpstream(tb, s)
	p.forget = up.CloseIdleConnections
	bodyIdle, readHeader, idle := planeBodyIdle, planeReadHeader, planeIdle
	if s.patience > 0 {
		bodyIdle, readHeader, idle = s.patience, s.patience, s.patience
	}
	g, err := guard.New(guard.Config{
		Rules: planeRules(tb), Store: scriptedByCount{}, Observer: p.verdicts,
		Identity: &rule.Identity{TrustedProxies: []netip.Prefix{netip.PrefixFrom(trustedPeer.Addr(), 32)}, UserIPHeaders: []string{"X-User-Ip"}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	c := Config{
		Guard: g, Upstream: up.URL, Transport: s.tamper.transport(up), Traffic: p.traffic, BodyIdle: bodyIdle, Log: slog.New(slog.DiscardHandler),
	}
	if c.Fast = fast && s.tamper.handler == nil; fast && c.Transport == http.RoundTripper(up) { // A tampered transport needs all requests.
		c.Client = up.Client()
	}
	front, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	p.log, err = accesslog.Open(accesslog.Config{Output: p.lines})
	if err != nil {
		tb.Fatal(err)
	}
	p.server = NewServer(front, ServerConfig{
		ReadHeader: readHeader, Idle: idle, MaxHeader: 4 << 10, RequestID: "X-Request-Id", Access: p.log,
		Trusts: func(from netip.Addr) bool { return from == trustedPeer.Addr() }, Log: slog.New(slog.DiscardHandler), checkEvery: 100 * time.Millisecond,
	})
	served := make(chan error, 1)
	go func() { served <- p.server.Serve(s.tamper.listener(p, p.watch(s))) }()
	p.ending = append([]func(){func() { p.drain(tb, served) }, up.CloseIdleConnections, func() { _ = p.log.Close() }}, append(p.ending, behind)...)
	return p
}

// startUpstream starts the upstream and opens the listener for clients.
func (p *plane) startUpstream(tb testing.TB, s planeSetup) (up *Upstream, stop func()) {
	tb.Helper()
	behind, at := net.Listener(newMemoryListener()), &url.URL{Scheme: "http", Host: "localhost"}
	p.clients, p.accepted = newMemoryListener(), make(chan net.Conn, 1)
	if s.sockets {
		at = &url.URL{Scheme: "unix", Path: filepath.Join(tb.TempDir(), "s")}
		p.clients, behind = opening(tb, "tcp", "127.0.0.1:0"), opening(tb, "unix", at.Path)
	}
	if s.service != "" {
		at.Path = s.service
	}
	var serving sync.WaitGroup
	serving.Go(func() { p.upstream.serve(behind) })
	up, err := NewUpstream(UpstreamConfig{URL: at, Timeout: planeUpstream, BodyIdle: planeBodyIdle})
	if err != nil {
		tb.Fatal(err)
	}
	if memory, ok := behind.(*memoryListener); ok {
		dial := memory.dial
		if s.plain {
			dial = dialPlain(dial)
		}
		up.transport.DialContext = boundWrites(dial, planeBodyIdle)
		up.client = newClient(UpstreamConfig{URL: at, Timeout: planeUpstream, BodyIdle: planeBodyIdle}, dial)
	}
	return up, func() {
		_ = behind.Close()
		p.upstream.stop()
		serving.Wait()
	}
}

func opening(tb testing.TB, network, address string) net.Listener {
	tb.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		tb.Fatal(err)
	}
	return ln
}

func (p *plane) drain(tb testing.TB, served <-chan error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) //nolint:usetesting // because it runs after the test.
	defer cancel()
	if err := p.server.Drain(ctx); err != nil {
		tb.Error(err)
	}
	if err := <-served; err != nil {
		tb.Error(err)
	}
}

// stop ends the plane and all its goroutines.
func (p *plane) stop() {
	for _, end := range p.ending {
		end()
	}
}

// The peers of a plane.
var (
	untrustedPeer = netip.MustParseAddrPort("127.0.0.1:0")
	trustedPeer   = netip.MustParseAddrPort("127.0.0.2:0")
)

// verdicts records the rules' view of each request and their decision.
type verdicts struct {
	mu   sync.Mutex
	seen []string
}

// Observe implements guard.Observer.
func (v *verdicts) Observe(req *headgate.Request, a *guard.Answer) {
	key, _ := lookup(req.Header, "X-Api-Key")
	cookie, _ := lookup(req.Cookie, "session")
	words := []string{req.Method, req.Host, req.Path, req.IP.String(), key, cookie, a.Verdict.String()}
	for i := range a.Results {
		r := &a.Results[i]
		words = append(words, r.Policy, r.Decision.Reason.String(), string(r.AppendRawKey(nil)))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = append(v.seen, strings.Join(words, " "))
}

func lookup(in headgate.Values, name string) (string, bool) {
	if in == nil {
		return "", false
	}
	return in.Lookup(name)
}

// take returns what was seen since the last call.
func (v *verdicts) take() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	taken := v.seen
	v.seen = nil
	return taken
}

// watch returns the listener for clients. Of a listener in memory, the driver needs no connection.
func (p *plane) watch(s planeSetup) net.Listener {
	if s.sockets {
		return &acceptedConns{p.clients, p.accepted}
	}
	if s.plain {
		return plainListener{p.clients}
	}
	return p.clients
}

// acceptedConns is a listener that tells which connections it has accepted. The server gets the
// connections themselves, with their sockets.
type acceptedConns struct {
	net.Listener

	accepted chan net.Conn
}

// Accept implements net.Listener.
func (w *acceptedConns) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err == nil {
		w.accepted <- c
	}
	return c, err
}
