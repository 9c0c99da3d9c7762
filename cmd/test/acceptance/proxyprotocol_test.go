package acceptance

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

const balancedConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: client, key: [ip], limits: ["1/1h"]}
proxy:
  listen: "127.0.0.1:0"
  proxy_protocol: [%s]%s
  upstream: "%%s"
`

// version2 gives a PROXY protocol header in binary form.
func version2(command byte, from, to netip.AddrPort, more ...byte) string {
	b := []byte("\r\n\r\n\x00\r\nQUIT\n")
	family, addresses := byte(0), []byte(nil)
	if from.IsValid() {
		if family = 0x11; from.Addr().Is6() {
			family = 0x21
		}
		addresses = append(from.Addr().AsSlice(), to.Addr().AsSlice()...)
		addresses = append(addresses, byte(from.Port()>>8), byte(from.Port()), byte(to.Port()>>8), byte(to.Port()))
	}
	addresses = append(addresses, more...)
	b = append(b, 0x20|command, family, byte(len(addresses)>>8), byte(len(addresses)))
	return string(append(b, addresses...))
}

// TestProxyProtocol: behind a trusted balancer, each client is counted and forwarded with the
// address from the header. Connections without a valid header are refused.
func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, fmt.Sprintf(balancedConfiguration, "127.0.0.0/8", ""), behind.url)
	to, to6 := netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("[2001:db8::1]:80")
	client := netip.MustParseAddrPort
	const proxied, local = byte(1), byte(0)
	for _, c := range []struct {
		name, header string
		status       int // 0 for a connection that was closed without an answer
		from         string
	}{
		{"version 1", "PROXY TCP4 203.0.113.1 192.0.2.1 5000 80\r\n", 200, "203.0.113.1"},
		{"the same client again", "PROXY TCP4 203.0.113.1 192.0.2.1 5001 80\r\n", 429, ""},
		{"another client", "PROXY TCP4 203.0.113.2 192.0.2.1 5000 80\r\n", 200, "203.0.113.2"},
		{"version 1, IPv6", "PROXY TCP6 2001:db8::7 2001:db8::1 5000 80\r\n", 200, "2001:db8::7"},
		{"the same /64", "PROXY TCP6 2001:db8::8 2001:db8::1 5000 80\r\n", 429, ""},
		{"version 2", version2(proxied, client("203.0.113.3:5000"), to), 200, "203.0.113.3"},
		{"version 2 again", version2(proxied, client("203.0.113.3:5000"), to), 429, ""},
		{"version 2 with more in it", version2(proxied, client("203.0.113.4:5000"), to, 4, 0, 3, 'a', 'b', 'c'), 200, "203.0.113.4"},
		{"version 2, IPv6", version2(proxied, client("[2001:db8:1::7]:5000"), to6), 200, "2001:db8:1::7"},
		{"its own check", version2(local, netip.AddrPort{}, to), 200, "127.0.0.1"},
		{"unknown, which is the balancer too", "PROXY UNKNOWN\r\n", 429, ""},

		{"none", "", 0, ""},
		{"an address that is none", "PROXY TCP4 203.0.113.999 192.0.2.1 5000 80\r\n", 0, ""},
		{"a port that is none", "PROXY TCP4 203.0.113.9 192.0.2.1 70000 80\r\n", 0, ""},
		{"IPv6 as IPv4", "PROXY TCP4 2001:db8::7 2001:db8::1 5000 80\r\n", 0, ""},
		{"another word", "PROXY UDP4 203.0.113.9 192.0.2.1 5000 80\r\n", 0, ""},
		{"too long", "PROXY TCP4 203.0.113.9 192.0.2.1 5000 80" + fmt.Sprintf("%200s", "") + "\r\n", 0, ""},
		{"without carriage return", "PROXY TCP4 203.0.113.9 192.0.2.1 5000 80\n", 0, ""},
		{"version 3", "\r\n\r\n\x00\r\nQUIT\n\x31\x11\x00\x0c\xcb\x00\x71\x09\xc0\x00\x02\x01\x13\x88\x00\x50", 0, ""},
		{"shorter than it says", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x04\xcb\x00\x71\x09", 0, ""},
		{"two", "PROXY TCP4 203.0.113.9 192.0.2.1 5000 80\r\nPROXY TCP4 203.0.113.10 192.0.2.1 5000 80\r\n", 400, ""},
	} {
		w := dial(t, "tcp", i.Proxy)
		w.send(c.header + request("GET / HTTP/1.1", "Host: a", "Connection: close"))
		if status := statusOr0(w.answer()); status != c.status {
			t.Errorf("%s: status %d, want %d", c.name, status, c.status)
		}
		reached := behind.take()
		if len(reached) != map[bool]int{true: 1}[c.status == 200] {
			t.Errorf("%s: %d requests reach the upstream", c.name, len(reached))
		} else if len(reached) == 1 && reached[0].one("x-forwarded-for") != c.from {
			t.Errorf("%s: the upstream is told of %q, want %q", c.name, reached[0].one("x-forwarded-for"), c.from)
		}
	}
}

func statusOr0(a *answered) int {
	if a == nil {
		return 0
	}
	return a.status
}

// TestProxyProtocolInPieces: a header may arrive in pieces and before TLS, but not too slowly.
func TestProxyProtocolInPieces(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.issue(t, "proxy.example", 2)
	behind := newWitness(t)
	secured := fmt.Sprintf("\n  tls: {cert: %s, key: %s}", server.cert, server.key)
	i := start(t, fmt.Sprintf(balancedConfiguration, "127.0.0.0/8", secured), behind.url)
	w := dial(t, "tcp", i.Proxy)
	if tcp, ok := w.Conn.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true)
	}
	header := version2(1, netip.MustParseAddrPort("203.0.113.1:5000"), netip.MustParseAddrPort("192.0.2.1:443"))
	for n := range len(header) {
		w.send(header[n : n+1])
		<-time.After(time.Millisecond)
	}
	secure := tls.Client(w.Conn, &tls.Config{RootCAs: ca.pool(), ServerName: "proxy.example"})
	if _, err := secure.Write([]byte(request("GET / HTTP/1.1", "Host: a", "Connection: close"))); err != nil {
		t.Fatal(err)
	}
	w.in.Reset(secure)
	if got := w.answer(); got == nil || got.status != http.StatusOK {
		t.Errorf("the answer is %+v", got)
	}
	if got := behind.take(); len(got) != 1 || got[0].one("x-forwarded-for") != "203.0.113.1" || got[0].one("x-forwarded-proto") != "https" {
		t.Errorf("the upstream is told %+v", got)
	}
	// A header of version 1 must arrive at once, as its specification requires of senders. An
	// incomplete header of version 2 times out.
	began := time.Now()
	halves := []string{"PROXY TCP4 203.0.", header[:14]}
	for n, least := range []time.Duration{0, 4 * time.Second} {
		silent := dial(t, "tcp", i.Proxy)
		silent.send(halves[n])
		silent.ended()
		if elapsed := time.Since(began); elapsed < least || elapsed > least+6*time.Second {
			t.Errorf("half a header of version %d is cut off after %v", n+1, elapsed)
		}
	}
}

// TestProxyProtocolUntrusted: a header from an untrusted peer is an invalid request, and its
// address is not counted.
func TestProxyProtocolUntrusted(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, fmt.Sprintf(balancedConfiguration, "10.0.0.0/8", ""), behind.url)
	to := netip.MustParseAddrPort("192.0.2.1:80")
	for _, header := range []string{
		"PROXY TCP4 203.0.113.1 192.0.2.1 5000 80\r\n", version2(1, netip.MustParseAddrPort("203.0.113.1:5000"), to), "PROXY UNKNOWN\r\n",
	} {
		w := dial(t, "tcp", i.Proxy)
		w.send(header + request("GET / HTTP/1.1", "Host: a"))
		if got := w.answer(); got == nil || got.status != http.StatusBadRequest {
			t.Errorf("%q is answered with %+v, want 400", header, got)
		}
	}
	if got := behind.take(); len(got) != 0 {
		t.Errorf("the upstream is reached: %+v", got)
	}
	if resp, _ := get(t, "http://"+i.Proxy+"/"); resp.StatusCode != http.StatusOK {
		t.Errorf("a plain request is answered with %d", resp.StatusCode)
	}
	if got := behind.take(); len(got) != 1 || got[0].one("x-forwarded-for") != "127.0.0.1" {
		t.Errorf("the upstream is told %+v", got)
	}
}
