package httplimit

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

func TestPeer(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:443":          "192.0.2.1",
		"[::ffff:192.0.2.1]:443": "192.0.2.1",
		"[2001:db8::1]:443":      "2001:db8::1",
		"[fe80::1%eth0]:443":     "fe80::1",
		"192.0.2.1":              "192.0.2.1", // An earlier handler has rewritten the address.
		"::ffff:192.0.2.1":       "192.0.2.1",
		"2001:db8::1":            "2001:db8::1",
	} {
		if got := peer(remote); got != netip.MustParseAddr(want) {
			t.Errorf("peer(%q) = %v, want %s", remote, got, want)
		}
	}
	for _, odd := range []string{
		"1.2.3.4", "1.2.3.4:", "1.2.3:5", "1.2.3.4.5:6", "256.1.1.1:1", "01.2.3.4:5", "00.1.1.1:1", "0.0.0.0:0", "1..2.3:4", "1.2.3.4:5:6", "", ":1", "a",
		"1.2.3.4 :5", "255.255.255.255:1", "1.2.3.1000:1", "1.2.3.4\x00:5",
	} {
		host := odd
		if i := strings.IndexByte(odd, ':'); i >= 0 && i == strings.LastIndexByte(odd, ':') {
			host = odd[:i]
		}
		if want, _ := netip.ParseAddr(host); peer(odd) != want {
			t.Errorf("peer(%q) = %v, want %v", odd, peer(odd), want)
		}
	}
	if got := peer("@"); got.IsValid() {
		t.Errorf("peer of a host name = %v, want none", got)
	}
}

func TestLookups(t *testing.T) {
	h := http.Header{
		"X-Client-Id": {"a", "b"},
		"Cookie":      {"one=1; two=\"2\";three = 3 ;empty=; bare", "one=late; session=s=t"},
	}
	for _, c := range []struct {
		values headgate.Values
		name   string
		want   string
		found  bool
	}{
		{headers(h), "X-Client-Id", "a", true}, // The first value counts.
		{headers(h), "X-Other", "", false},
		{&cookies{headers(h)}, "one", "1", true},
		{&cookies{headers(h)}, "two", "2", true},
		{&cookies{headers(h)}, "three", "3", true},
		{&cookies{headers(h)}, "empty", "", true},
		{&cookies{headers(h)}, "bare", "", true},
		{&cookies{headers(h)}, "session", "s=t", true},
		{&cookies{headers(h)}, "ONE", "1", true}, // nginx ignores case in cookie names.
		{&cookies{headers(h)}, "missing", "", false},
		{&cookies{headers{}}, "one", "", false},
	} {
		if got, found := c.values.Lookup(c.name); got != c.want || found != c.found {
			t.Errorf("%T.Lookup(%q) = %q, %v, want %q, %v", c.values, c.name, got, found, c.want, c.found)
		}
	}
}

func TestIdentifyDoesNotAllocate(t *testing.T) {
	r := &http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/v1/product"}, Host: "api.example.com:8080", RemoteAddr: "192.0.2.1:443",
		Header: http.Header{"X-Client-Id": {"a"}, "Cookie": {"a=b; session=s"}},
	}
	var x Exchange
	g := new(guard.Guard)
	if n := testing.AllocsPerRun(100, func() {
		_ = x.Identify(g, r)
		x.Request.Header.Lookup("X-Client-Id")
		x.Request.Cookie.Lookup("session")
	}); n != 0 {
		t.Errorf("Identify needs %v allocations, want 0", n)
	}
}
