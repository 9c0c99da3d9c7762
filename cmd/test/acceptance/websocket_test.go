package acceptance

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

const socketConfiguration = `version: 1
max_memory: 16MiB
shutdown_timeout: 5s
rules:
  - name: handshakes
    match: {path: /limited}
    key: [header:X-Client-Id]
    limits: ["2/1h"]
proxy:
  listen: "127.0.0.1:0"
  body_idle_timeout: 300ms
  upstream: "%s"
`

// echo is a WebSocket service that sends messages back. It reports the end of each connection.
func echo(t *testing.T) (url string, ends <-chan error) {
	t.Helper()
	ended := make(chan error, 16)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"farm.v1"}, InsecureSkipVerify: true})
		if err != nil {
			ended <- err
			return
		}
		defer conn.CloseNow()
		conn.SetReadLimit(4 << 20)
		for {
			kind, message, err := conn.Read(r.Context())
			switch {
			case err != nil:
				ended <- err
				return
			case string(message) == "bye":
				ended <- conn.Close(4002, "as you say")
				return
			case string(message) == "ping":
				// CloseRead reads and answers pings; the other side does too.
				alive := conn.CloseRead(r.Context())
				ended <- conn.Ping(alive)
				return
			}
			if err := conn.Write(r.Context(), kind, message); err != nil {
				ended <- err
				return
			}
		}
	}))
	t.Cleanup(behind.Close)
	return behind.URL, ended
}

func connectSocket(t *testing.T, url string, o *websocket.DialOptions) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), url, o) //nolint:bodyclose // There is none to close: the connection is the caller's.
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(4 << 20)
	t.Cleanup(func() { conn.CloseNow() })
	return conn
}

// says sends a message and expects it back.
func says(t *testing.T, conn *websocket.Conn, kind websocket.MessageType, message []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := conn.Write(ctx, kind, message); err != nil {
		t.Fatal(err)
	}
	gotKind, got, err := conn.Read(ctx)
	if err != nil || gotKind != kind || !bytes.Equal(got, message) {
		t.Fatalf("%d bytes of %v come back as %d of %v: %v", len(message), kind, len(got), gotKind, err)
	}
}

// TestWebSocket: messages, pings and close codes pass in both directions, also by TLS.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.issue(t, "proxy.example", 2)
	secured := strings.Replace(socketConfiguration, "  upstream", fmt.Sprintf("  tls: {cert: %s, key: %s}\n  upstream", server.cert, server.key), 1)
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool()}}}
	for scheme, c := range map[string]struct {
		configuration string
		client        *http.Client
	}{"ws": {socketConfiguration, nil}, "wss": {secured, trusting}} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			upstream, ends := echo(t)
			url := scheme + "://" + start(t, c.configuration, upstream).Proxy + "/socket"
			conn := connectSocket(t, url, &websocket.DialOptions{HTTPClient: c.client, Subprotocols: []string{"farm.v1"}})
			if conn.Subprotocol() != "farm.v1" {
				t.Errorf("the protocol agreed upon is %q", conn.Subprotocol())
			}
			says(t, conn, websocket.MessageText, []byte("hello"))
			says(t, conn, websocket.MessageBinary, make([]byte, 3<<20))
			// A WebSocket connection may be idle for longer than a body.
			<-time.After(600 * time.Millisecond)
			says(t, conn, websocket.MessageText, nil)

			reading := conn.CloseRead(t.Context())
			if err := conn.Ping(reading); err != nil {
				t.Errorf("a ping of the client: %v", err)
			}
			if err := conn.Close(4001, "enough"); err != nil {
				t.Errorf("closing: %v", err)
			}
			var closed websocket.CloseError
			if err := <-ends; !errors.As(err, &closed) || closed.Code != 4001 || closed.Reason != "enough" {
				t.Errorf("the service sees %v, want 4001", err)
			}

			conn = connectSocket(t, url, &websocket.DialOptions{HTTPClient: c.client})
			_ = conn.Write(t.Context(), websocket.MessageText, []byte("bye"))
			if _, _, err := conn.Read(t.Context()); !errors.As(err, &closed) || closed.Code != 4002 || closed.Reason != "as you say" {
				t.Errorf("the client sees %v, want 4002", err)
			}
			<-ends

			conn = connectSocket(t, url, &websocket.DialOptions{HTTPClient: c.client})
			_ = conn.Write(t.Context(), websocket.MessageText, []byte("ping"))
			go func() { _, _, _ = conn.Read(t.Context()) }() // answers pings
			if err := <-ends; err != nil {
				t.Errorf("a ping of the service: %v", err)
			}

			conn = connectSocket(t, url, &websocket.DialOptions{HTTPClient: c.client})
			says(t, conn, websocket.MessageText, []byte("hello"))
			conn.CloseNow() // The client closes without a close frame, and the service notices.
			if err := <-ends; websocket.CloseStatus(err) != -1 {
				t.Errorf("a client that vanished: the service sees %v", err)
			}
		})
	}
}

// TestWebSocketLimited: a handshake is counted and refused like any request.
func TestWebSocketLimited(t *testing.T) {
	t.Parallel()
	upstream, _ := echo(t)
	i := start(t, socketConfiguration, upstream)
	o := &websocket.DialOptions{HTTPHeader: http.Header{"X-Client-Id": {"a"}}}
	for n := range 3 {
		conn, resp, err := websocket.Dial(t.Context(), "ws://"+i.Proxy+"/limited", o) //nolint:bodyclose // As above.
		if n < 2 {
			if err != nil {
				t.Fatal(err)
			}
			says(t, conn, websocket.MessageText, []byte("hello"))
			conn.CloseNow()
			continue
		}
		if err == nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || resp.Header.Get("RateLimit") == "" {
			t.Errorf("handshake %d of two: %v %+v", n+1, err, resp)
		}
	}
}

// TestWebSocketDrained: while the proxy drains, open connections continue, and the process ends
// with the last one. A connection that lasts longer than shutdown_timeout is aborted, and the
// exit status shows that.
func TestWebSocketDrained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout string
		status  int
	}{"in time": {"10s", 0}, "too late": {"700ms", 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream, ends := echo(t)
			i := start(t, strings.Replace(socketConfiguration, "5s", c.timeout, 1), upstream)
			conn := connectSocket(t, "ws://"+i.Proxy+"/", nil)
			says(t, conn, websocket.MessageText, []byte("before"))
			if err := i.command.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the listener to close", func() bool {
				probe, err := net.Dial("tcp", i.Proxy)
				if err == nil {
					probe.Close()
				}
				return err != nil
			})
			says(t, conn, websocket.MessageText, []byte("while it drains"))
			if c.status == 0 {
				if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
					t.Error(err)
				}
			} else if _, _, err := conn.Read(t.Context()); err == nil {
				t.Error("the conversation goes on")
			}
			<-ends
			<-i.ended
			if got := exitStatus(i.status); got != c.status {
				t.Errorf("exit status %d, want %d\n%s", got, c.status, i.text())
			}
		})
	}
}

// TestOtherUpgrade: other protocols pass too: bytes in both directions, until one side has
// finished.
func TestOtherUpgrade(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
		_, _ = io.WriteString(conn, "all")
	}))
	defer behind.Close()
	i := start(t, socketConfiguration, behind.URL)
	w := dial(t, "tcp", i.Proxy)
	w.send(request("GET /talk HTTP/1.1", "Host: a", "Connection: keep-alive, Upgrade", "Upgrade: farm/2") + "early")
	resp, err := http.ReadResponse(w.in, nil) //nolint:bodyclose // What follows 101 is no body.
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Upgrade") != "farm/2" {
		t.Fatalf("the answer is %+v: %v", resp, err)
	}
	w.send(" and late ")
	if tcp, ok := w.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	if all, err := io.ReadAll(w.in); err != nil || string(all) != "early and late all" {
		t.Errorf("%q comes back: %v", all, err)
	}
}

// TestTunnelsAreRefused: a client cannot upgrade to a protocol whose requests no rule would see.
// The proxy drops the Upgrade header and forwards the request.
func TestTunnelsAreRefused(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, socketConfiguration, behind.url)
	for _, wish := range []string{"h2c", "H2C", "h2c, websocket", "websocket, h2c", "HTTP/2.0", "TLS/1.2", "websocket\r\nUpgrade: h2c"} {
		w := dial(t, "tcp", i.Proxy)
		w.send(request("GET /x HTTP/1.1", "Host: a", "Connection: Upgrade, HTTP2-Settings", "Upgrade: "+wish,
			"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA") + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		if got := w.answer(); got == nil || got.status != http.StatusOK {
			t.Errorf("Upgrade: %q is answered with %+v, want 200", wish, got)
		}
		w.Close()
		for _, r := range behind.take() {
			if head := strings.ToLower(r.raw); strings.Contains(head, "upgrade") || strings.Contains(head, "http2-settings") {
				t.Errorf("Upgrade: %q reaches the upstream:\n%s", wish, r.raw)
			}
		}
	}
	// The same with nghttp.
	if out := output(t, "nghttp", "-v", "-u", "http://"+i.Proxy+"/x"); strings.Contains(out, "101 Switching") {
		t.Errorf("nghttp upgrades:\n%s", out)
	}
}
