package listen

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// who serves a page with the client's address as the server sees it.
func who(t *testing.T, l net.Listener) {
	t.Helper()
	s := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) }),
		ReadHeaderTimeout: time.Second,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-ended })
}

// from connects from an address of the loopback network.
func from(t *testing.T, source string, to net.Addr) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	c, err := d.DialContext(t.Context(), to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const simpleRequest = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

// answer reads a response to its end and returns its status and body.
func answer(t *testing.T, c net.Conn) (status, body string) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	text, err := io.ReadAll(bufio.NewReader(c))
	if err != nil {
		t.Logf("reading the response: %v", err)
	}
	head, body, _ := strings.Cut(string(text), "\r\n\r\n")
	if fields := strings.Fields(head); len(fields) > 1 {
		status = fields[1]
	}
	return status, body
}

// header returns a header of version 2 as a balancer sends it.
func header(t *testing.T, h proxyproto.Header) string {
	t.Helper()
	h.Version = 2
	text, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestProxyProtocol(t *testing.T) {
	const balancer, stranger = "127.0.0.2", "127.0.0.3"
	four := &net.TCPAddr{IP: net.ParseIP("192.0.2.7").To4(), Port: 4711}
	six := &net.TCPAddr{IP: net.ParseIP("2001:db8::7"), Port: 4711}
	l := listener(t, Config{
		Address: "127.0.0.1:0", ProxyProtocol: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
		ProxyHeaderTimeout: 2 * time.Second,
	})
	who(t, l)
	silent := from(t, balancer, l.Addr()) // The silent connection delays no other connection.
	for _, c := range []struct {
		name, source, send string
		status, client     string // client "" means the peer itself
	}{
		{"version 1", balancer, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n", "200", "192.0.2.7:4711"},
		{"version 1, IPv6", balancer, "PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n", "200", "[2001:db8::7]:4711"},
		{"version 1, unknown", balancer, "PROXY UNKNOWN\r\n", "200", ""},
		{"version 2", balancer, header(t, proxyproto.Header{
			Command: proxyproto.PROXY, TransportProtocol: proxyproto.TCPv4, SourceAddr: four, DestinationAddr: four,
		}), "200", "192.0.2.7:4711"},
		{"version 2, IPv6", balancer, header(t, proxyproto.Header{
			Command: proxyproto.PROXY, TransportProtocol: proxyproto.TCPv6, SourceAddr: six, DestinationAddr: six,
		}), "200", "[2001:db8::7]:4711"},
		{"the balancer's own check", balancer, header(t, proxyproto.Header{
			Command: proxyproto.LOCAL, TransportProtocol: proxyproto.TCPv4, SourceAddr: four, DestinationAddr: four,
		}), "200", ""},
		{"a balancer without a header", balancer, "", "", ""},
		{"a balancer with half a header", balancer, "PROXY TCP4 192.0.2.7", "", ""},
		{"a header that is too long", balancer, "PROXY UNKNOWN " + strings.Repeat("x", 200) + "\r\n", "", ""},
		{"no address", balancer, "PROXY TCP4 localhost 192.0.2.1 4711 80\r\n", "", ""},
		{"a stranger", stranger, "", "200", ""},
		{"a header from an untrusted peer", stranger, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n", "400", ""},
		{"a header of version 2 from an untrusted peer", stranger, "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c", "400", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := from(t, c.source, l.Addr())
			fmt.Fprint(conn, c.send+simpleRequest)
			want := c.client
			if want == "" {
				want = conn.LocalAddr().String()
			}
			status, body := answer(t, conn)
			if status != c.status || status == "200" && body != want {
				t.Errorf("got status %q, client %q, want %q, %q", status, body, c.status, want)
			}
		})
	}
	// A late header times out.
	if status, _ := answer(t, silent); status != "" {
		t.Errorf("a silent balancer got response %q", status)
	}
}

func TestProxyProtocolOnUnixSockets(t *testing.T) {
	for _, c := range []struct {
		trusted      bool
		status, body string
	}{{true, "200", "192.0.2.7:4711"}, {false, "400", "400 Bad Request"}} {
		l := listener(t, Config{Address: "unix:" + filepath.Join(t.TempDir(), "x.sock"), ProxyProtocolUnix: c.trusted})
		who(t, l)
		conn := dial(t, l.Addr())
		fmt.Fprint(conn, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n"+simpleRequest)
		if status, body := answer(t, conn); status != c.status || body != c.body {
			t.Errorf("trusted %v: got status %q, client %q, want %q, %q", c.trusted, status, body, c.status, c.body)
		}
	}
}

func TestBalancers(t *testing.T) {
	b := balancers{networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fe80::/10")}}
	for _, c := range []struct {
		peer net.Addr
		want bool
	}{
		{&net.TCPAddr{IP: net.ParseIP("10.1.2.3")}, true}, // A dual-stack socket returns ::ffff:10.1.2.3.
		{&net.TCPAddr{IP: net.ParseIP("10.1.2.3").To4()}, true},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, true},
		{&net.TCPAddr{IP: net.ParseIP("192.0.2.1")}, false},
		{&net.TCPAddr{}, false},
		{&net.UnixAddr{Name: "@"}, false},
		{&net.UDPAddr{IP: net.ParseIP("10.1.2.3")}, false},
		{nil, false},
	} {
		if got := b.include(c.peer); got != c.want {
			t.Errorf("include(%v) = %v, want %v", c.peer, got, c.want)
		}
	}
}

// FuzzProxied checks that a balancer's bytes cause no panic, and change only the address.
func FuzzProxied(f *testing.F) {
	for _, seed := range []string{
		"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\nx", "PROXY UNKNOWN\r\nx", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00x",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\x12\x67\x00\x50x", "GET / HTTP/1.1\r\n\r\n", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		client, server := net.Pipe()
		go func() { _, _ = client.Write(sent); client.Close() }()
		defer server.Close()
		c := newProxied(&counted{Conn: server, from: new(Listener)}, time.Second)
		if c.RemoteAddr() == nil || c.RemoteAddr().String() == "" {
			t.Errorf("%q leaves no remote address", sent)
		}
		rest, err := io.ReadAll(c)
		if err == nil && !strings.HasPrefix(string(sent), "PROXY") && !strings.HasPrefix(string(sent), "\r\n\r\n\x00\r\nQUIT\n") {
			t.Errorf("%q was accepted as a header", sent)
		}
		if len(rest) > len(sent) {
			t.Errorf("input %q: read %q", sent, rest)
		}
	})
}
