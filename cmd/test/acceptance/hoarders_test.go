package acceptance

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/internal/config"
)

const hoardedConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: none, match: {path: /refused}, key: [all], limits: ["0/s"]}
proxy:
  listen: "127.0.0.1:0"
  max_connections: %d
  body_idle_timeout: %s
  idle_timeout: %s
  %s
  upstream: "%%s"
`

// hoarding is an attack by HTTP/2 clients that do not read answers. Each connection has many
// streams and no flow-control window.
type hoarding struct {
	connections, streams int
	idle                 time.Duration
	// secure makes the clients use TLS, with HTTP/2 by ALPN.
	secure bool
	// late bounds the time from idle to the release of the last request. A busy machine needs a long
	// time to read the sent requests.
	late time.Duration
	// settings are those of the proxy beside TLS.
	settings string

	trusting *tls.Config // of the clients; nil without TLS
}

// TestStreamsThatAreNotRead is the small form of the attack; make soak runs the full size.
// Without a timeout, the requests would stay as long as their connections, until the end of the
// test.
func TestStreamsThatAreNotRead(t *testing.T) {
	(&hoarding{connections: 10, streams: 200, idle: 2 * time.Second, late: 30 * time.Second}).run(t)
}

// run checks that a client that reads is served during the attack, that memory stays within the
// bound that check prints, and that all requests are released in time.
func (h *hoarding) run(t *testing.T) {
	t.Helper()
	settings := h.settings
	if h.secure {
		ca := newAuthority(t)
		server := ca.issue(t, "proxy.example", 2)
		settings = fmt.Sprintf("tls: {cert: %s, key: %s}", server.cert, server.key)
		h.trusting = &tls.Config{RootCAs: ca.pool(), ServerName: "proxy.example"}
	}
	i := start(t, fmt.Sprintf(hoardedConfiguration, h.connections+100, h.idle, "5m", settings), "h2c://"+upstreamApart(t))
	loaded, err := config.Load(i.path)
	if err != nil {
		t.Fatal(err)
	}
	before := goroutines(t, i)
	var served, refused, slowest atomic.Int64
	stop := make(chan struct{})
	var innocent sync.WaitGroup
	innocent.Go(func() { h.askUntil(t, i, stop, &served, &refused, &slowest) })
	all := h.attack(t, i)
	most := inFlight(t, i)
	all.Wait()
	elapsed, most := h.released(t, i, most)
	close(stop)
	innocent.Wait()
	peaked, bound := peak(t, i.command.Process.Pid), loaded.MemoryBound()
	t.Logf("%d connections of %d streams: peak %d MiB of %d MiB, most in flight %d, released %v after the last, innocent client served %d times and refused %d, slowest %v, goroutines %d before and %d after",
		h.connections, h.streams, peaked>>20, bound>>20, most, elapsed, served.Load(), refused.Load(), time.Duration(slowest.Load()), before, goroutines(t, i))
	switch {
	case peaked > bound:
		t.Errorf("the proxy took %d MiB, and check prints %d", peaked>>20, bound>>20)
	case elapsed > h.idle+h.late:
		t.Errorf("requests were in flight for %v after the attack", elapsed)
	case served.Load() == 0 || refused.Load() > 0:
		t.Errorf("the innocent client was served %d times and refused %d", served.Load(), refused.Load())
	case most > int64(loaded.Proxy.MaxRequests)*2:
		t.Errorf("%d requests were in flight", most)
	}
}

// released waits until no request has been in flight for a second, because sent requests may
// reach the proxy later. It gives the time of the release and the number of requests seen in
// flight.
func (h *hoarding) released(t *testing.T, i *instance, most int64) (time.Duration, int64) {
	t.Helper()
	began := time.Now()
	last := began
	for {
		<-time.After(50 * time.Millisecond)
		now, at := inFlight(t, i), time.Now()
		if most = max(most, now); now > 1 {
			last = at
		}
		if at.Sub(last) > time.Second || at.Sub(began) > h.idle+h.late+patience {
			return last.Sub(began), most
		}
	}
}

// attack opens all connections, and gives a function that waits until the last stream was sent.
// The connections stay open until the end of the test.
func (h *hoarding) attack(t *testing.T, i *instance) *sync.WaitGroup {
	t.Helper()
	var sent bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&sent, nil)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for n := range h.streams {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		path := []string{"/", "/refused"}[n%2]
		for _, f := range [...][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", path}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // Each header block is independent.
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*n + 1), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
	}
	var sending sync.WaitGroup
	todo := make(chan struct{}, h.connections)
	for range h.connections {
		todo <- struct{}{}
	}
	close(todo)
	for range 64 { // The accept queue of the socket is finite.
		sending.Go(func() {
			for range todo {
				h.connect(t, i, sent.Bytes())
			}
		})
	}
	return &sending
}

// connect opens one connection of the attack. The connection stays open until the end of the
// test.
func (h *hoarding) connect(t *testing.T, i *instance, sent []byte) {
	t.Helper()
	var conn net.Conn
	for end := time.Now().Add(h.late + patience); conn == nil; {
		var err error
		// If the kernel's queue is full, the connection is tried again.
		if conn, err = net.DialTimeout("tcp", i.Proxy, time.Second); err != nil && time.Now().After(end) {
			t.Errorf("a connection of the attack: %v", err)
			return
		}
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetWriteDeadline(time.Now().Add(patience))
	if h.secure {
		config := h.trusting.Clone()
		config.NextProtos = []string{"h2"}
		conn = tls.Client(conn, config)
	}
	_, _ = conn.Write(sent) // fails when the proxy closes the connection
	go func() { _, _ = io.Copy(io.Discard, conn) }()
}

// askUntil is a client that reads its answers, on a kept connection.
func (h *hoarding) askUntil(t *testing.T, i *instance, stop <-chan struct{}, served, refused, slowest *atomic.Int64) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: h.trusting}, Timeout: patience}
	defer client.CloseIdleConnections()
	scheme := "http"
	if h.secure {
		scheme = "https"
	}
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		began := time.Now()
		resp, err := client.Get(scheme + "://" + i.Proxy + "/")
		slowest.Store(max(slowest.Load(), int64(time.Since(began))))
		if err != nil {
			t.Logf("the innocent client: %v", err)
			refused.Add(1)
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			served.Add(1)
		} else {
			t.Logf("the innocent client got %d", resp.StatusCode)
			refused.Add(1)
		}
	}
}

// inFlight reads the gauge.
func inFlight(t *testing.T, i *instance) int64 {
	t.Helper()
	_, metrics := get(t, "http://"+i.Health+"/metrics")
	_, rest, _ := strings.Cut(metrics, "\nheadgate_proxy_in_flight ")
	text, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("no gauge of requests in flight: %q", text)
	}
	return int64(n)
}

// idlers are connections that send one request and then stay open.
type idlers struct{ bound, connections int }

// TestIdleConnectionsGiveWay is the small form of the attack; make soak runs the full size.
func TestIdleConnectionsGiveWay(t *testing.T) {
	idlers{bound: 50, connections: 200}.run(t)
}

// run checks that a new client is served within a second at any time.
func (c idlers) run(t *testing.T) {
	t.Helper()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(hoardedConfiguration, c.bound, "5s", "5m", ""), behind.URL)
	slowest := time.Duration(0)
	for n := range c.connections {
		conn, err := net.DialTimeout("tcp", i.Proxy, patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, request("GET / HTTP/1.1", "Host: a"))
		if n%(c.connections/20) != 0 {
			continue
		}
		began := time.Now()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
		resp, err := client.Get("http://" + i.Proxy + "/")
		if err != nil {
			t.Fatalf("after %d idle connections: %v", n+1, err)
		}
		resp.Body.Close()
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("%d connections at a bound of %d: a new client waits %v at most", c.connections, c.bound, slowest)
	if slowest > time.Second {
		t.Errorf("a new client waited %v, want at most 1 s", slowest)
	}
}
