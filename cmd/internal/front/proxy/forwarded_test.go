package proxy

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"reflect"
	"testing"
)

func TestSetForwarded(t *testing.T) {
	trusts := func(peer netip.Addr) bool { return !peer.IsValid() || peer == netip.MustParseAddr("10.0.0.1") }
	sent := http.Header{
		"X-Forwarded-For": {"203.0.113.9, 10.0.0.7", "10.0.0.8"}, "X-Forwarded-Host": {"shop.example.com"}, "X-Forwarded-Proto": {"https"},
	}
	for _, c := range []struct {
		name, remote     string
		in               http.Header
		tls              bool
		who, host, proto string
	}{
		{"a client", "192.0.2.7:4711", nil, false, "192.0.2.7", "api.example.com", "http"},
		{"a client over TLS", "[2001:db8::7]:4711", nil, true, "2001:db8::7", "api.example.com", "https"},
		{"a client with forged fields", "192.0.2.7:4711", sent, false, "192.0.2.7", "api.example.com", "http"},
		{"a trusted proxy", "10.0.0.1:4711", sent, false, "203.0.113.9, 10.0.0.7, 10.0.0.8, 10.0.0.1", "shop.example.com", "https"},
		{"a trusted proxy with an IPv4-mapped address", "[::ffff:10.0.0.1]:4711", sent, false, "203.0.113.9, 10.0.0.7, 10.0.0.8, 10.0.0.1", "shop.example.com", "https"},
		{"a trusted proxy without fields", "10.0.0.1:4711", nil, true, "10.0.0.1", "api.example.com", "https"},
		{"a trusted unix socket", "@", sent, false, "203.0.113.9, 10.0.0.7, 10.0.0.8", "shop.example.com", "https"},
		{"a trusted unix socket without fields", "@", nil, false, "", "api.example.com", "http"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &http.Request{RemoteAddr: c.remote, Host: "api.example.com", Header: c.in}
			if c.tls {
				in.TLS = new(tls.ConnectionState)
			}
			l := list(c.in)
			setForwarded(l, in, addressOf(in.RemoteAddr), trusts)
			want := http.Header{"X-Forwarded-Host": {c.host}, "X-Forwarded-Proto": {c.proto}}
			if c.who != "" {
				want["X-Forwarded-For"] = []string{c.who}
			}
			if got := l.Header(); !reflect.DeepEqual(got, want) {
				t.Errorf("the upstream gets %v, want %v", got, want)
			}
		})
	}
	l := list(sent)
	setForwarded(l, new(http.Request), addressOf("10.0.0.1:1"), nil)
	if got := l.Get("X-Forwarded-For"); got != "10.0.0.1" {
		t.Errorf("with no trusted peer the upstream gets %q", got)
	}
}

func TestPeer(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:443":          "192.0.2.1",
		"[::ffff:192.0.2.1]:443": "192.0.2.1",
		"[2001:db8::1]:443":      "2001:db8::1",
		"[fe80::1%eth0]:443":     "fe80::1",
	} {
		if got := peer(remote); got != netip.MustParseAddr(want) {
			t.Errorf("peer(%q) = %v, want %s", remote, got, want)
		}
	}
	for _, remote := range []string{"@", "", "/run/x.sock"} {
		if got := peer(remote); got.IsValid() {
			t.Errorf("peer(%q) = %v, want none", remote, got)
		}
	}
}
