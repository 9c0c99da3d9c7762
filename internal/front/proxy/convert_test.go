package proxy

import (
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

func TestCleanPath(t *testing.T) {
	for _, c := range []struct {
		target string // as a client sends it
		want   string // "" for refused
	}{
		{"/", "/"},
		{"/v1/product", "/v1/product"},
		{"/v1/product/", "/v1/product/"},
		{"/.well-known/x", "/.well-known/x"},
		{"/a/...", "/a/..."},
		{"/a/..b/.c", "/a/..b/.c"},
		{"/a;v=1/b", "/a;v=1/b"},
		{"/%76%31/product", "/v1/product"}, // Escapes that say nothing.
		{"//v1/product", "/v1/product"},
		{"/v1//product", "/v1/product"},
		{"/v1/./product", "/v1/product"},
		{"/x/../v1/product", "/v1/product"},
		{"/x/%2e%2e/v1/product", "/v1/product"},
		{"/x/.%2E/v1/product", "/v1/product"},
		{"/../../v1/product", "/v1/product"}, // There is nothing above the root.
		{"/v1/product/.", "/v1/product/"},
		{"/v1/product/x/..", "/v1/product/"},
		{"/..", "/"},
		{"//", "/"},
		{"/v1%2Fproduct", "/v1/product"},     // An escaped slash counts as one.
		{"/v1%252Fproduct", "/v1%2Fproduct"}, // Decoded once.
		{"/x%2F../v1", ""},                   // To resolve it, one would have to know what the slash means.
		{"/x/..%2fv1", ""},
		{"/v1%5Cproduct", ""}, // Some services read a backslash as a slash.
		{`/v1\product`, ""},
		{"/x/..;/v1/product", ""}, // Some services drop ";…" before they resolve, and others do not.
		{"/x/.;a=b/v1", ""},
		{"/v1/%00product", ""},
		{"/v1/%0aproduct", ""},
		{"/v1/%7f", ""},
		{"*", ""},
	} {
		u, err := url.ParseRequestURI(c.target)
		if err != nil {
			t.Fatalf("%s: %v", c.target, err)
		}
		got, ok := cleanPath(u.Path, u.RawPath)
		if want := c.want != ""; ok != want || got != c.want {
			t.Errorf("cleanPath of %s = %q, %v, want %q", c.target, got, ok, c.want)
		}
	}
	if got, ok := cleanPath("", ""); got != "/" || !ok {
		t.Errorf("the empty path is %q, want /", got)
	}
}

// What the upstream is sent, read as the upstream reads it, is what the rules matched.
func FuzzFill(f *testing.F) {
	for _, seed := range []string{"/v1/product", "//a/../b", "/%2e%2e/x", "/a%2Fb", "/a%2F../b", "/..;/x", "/%", "*", "/a/.", "/?x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Host != "" || u.Opaque != "" {
			return
		}
		var req headgate.Request
		forward, ok := fill(&req, &http.Request{URL: u, Host: "a", RemoteAddr: "192.0.2.1:1"})
		if !ok {
			return
		}
		sent, err := url.ParseRequestURI(forward.URL.RequestURI())
		if err != nil {
			t.Fatalf("%q is forwarded as %q: %v", target, forward.URL.RequestURI(), err)
		}
		if got := sent.Path; got != req.Path {
			t.Errorf("%q is matched as %q, and the upstream reads %q", target, req.Path, got)
		}
		if p := strings.TrimSuffix(req.Path, "/"); p != "" && path.Clean(p) != p {
			t.Errorf("%q is matched as %q, which is not resolved", target, req.Path)
		}
	})
}

func TestCleanHost(t *testing.T) {
	for host, want := range map[string]string{
		"api.example.com":      "api.example.com",
		"API.Example.COM:8080": "api.example.com",
		"api.example.com.":     "api.example.com",
		"api.example.com.:80":  "api.example.com",
		"192.0.2.1:80":         "192.0.2.1",
		"[2001:DB8::1]:80":     "2001:db8::1",
		"[2001:db8::1]":        "2001:db8::1",
		"":                     "",
	} {
		if got := cleanHost(host); got != want {
			t.Errorf("cleanHost(%q) = %q, want %q", host, got, want)
		}
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
	if got := peer("@"); got.IsValid() {
		t.Errorf("peer of a name = %v, want none", got)
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
		{headers(h), "X-Client-Id", "a", true}, // The first counts.
		{headers(h), "X-Other", "", false},
		{cookies(h), "one", "1", true},
		{cookies(h), "two", "2", true},
		{cookies(h), "three", "3", true},
		{cookies(h), "empty", "", true},
		{cookies(h), "bare", "", true},
		{cookies(h), "session", "s=t", true},
		{cookies(h), "ONE", "", false},
		{cookies(h), "missing", "", false},
		{cookies(http.Header{}), "one", "", false},
	} {
		if got, found := c.values.Lookup(c.name); got != c.want || found != c.found {
			t.Errorf("%T.Lookup(%q) = %q, %v, want %q, %v", c.values, c.name, got, found, c.want, c.found)
		}
	}
}

func TestFillDoesNotAllocate(t *testing.T) {
	r := &http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: "/v1/product"}, Host: "api.example.com:8080", RemoteAddr: "192.0.2.1:443",
		Header: http.Header{"X-Client-Id": {"a"}, "Cookie": {"a=b; session=s"}},
	}
	var req headgate.Request
	if n := testing.AllocsPerRun(100, func() {
		fill(&req, r)
		req.Header.Lookup("X-Client-Id")
		req.Cookie.Lookup("session")
	}); n != 0 {
		t.Errorf("reading a request takes %v allocations, want 0", n)
	}
}
