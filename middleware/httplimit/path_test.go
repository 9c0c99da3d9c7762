package httplimit

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

func TestCleanPath(t *testing.T) {
	for _, c := range []struct {
		target string // as a client sends it
		want   string // "" means refused
	}{
		{"/", "/"},
		{"/v1/product", "/v1/product"},
		{"/v1/product/", "/v1/product/"},
		{"/.well-known/x", "/.well-known/x"},
		{"/a/...", "/a/..."},
		{"/a/..b/.c", "/a/..b/.c"},
		{"/a;v=1/b", "/a;v=1/b"},
		{"/%76%31/product", "/v1/product"}, // The escapes are redundant.
		{"//v1/product", "/v1/product"},
		{"/v1//product", "/v1/product"},
		{"/v1/./product", "/v1/product"},
		{"/x/../v1/product", "/v1/product"},
		{"/x/%2e%2e/v1/product", "/v1/product"},
		{"/x/.%2E/v1/product", "/v1/product"},
		{"/../../v1/product", "/v1/product"}, // ".." at the root stays at the root.
		{"/v1/product/.", "/v1/product/"},
		{"/v1/product/x/..", "/v1/product/"},
		{"/..", "/"},
		{"//", "/"},
		{"/v1%2Fproduct", "/v1/product"},     // An escaped slash counts as a slash.
		{"/v1%252Fproduct", "/v1%2Fproduct"}, // The path is decoded only once.
		{"/x%2F../v1", ""},                   // Resolving the path would need the meaning of the escaped slash.
		{"/x/..%2fv1", ""},
		{"/v1%5Cproduct", ""}, // Some services read a backslash as a slash.
		{`/v1\product`, ""},
		{"/x/..;/v1/product", ""}, // Some services drop ";…" before they resolve the path, and others do not.
		{"/x/.;a=b/v1", ""},
		{"/v1/%00product", ""},
		{"/v1/%0aproduct", ""},
		{"/v1/%7f", ""},
		{"*", ""},
	} {
		u, err := url.ParseRequestURI(c.target)
		if err != nil {
			t.Fatalf("parsing %s failed: %v", c.target, err)
		}
		got, err := cleanPath(u.Path, u.RawPath, true)
		if refused := c.want == ""; (err != nil) != refused || got != c.want {
			t.Errorf("cleanPath of %s = %q, %v, want %q", c.target, got, err, c.want)
		}
	}
	for _, resolves := range []bool{false, true} {
		if got, err := cleanPath("", "", resolves); got != "/" || err != nil {
			t.Errorf("cleanPath of the empty path = %q, %v, want /", got, err)
		}
	}
}

// FuzzForwardedPath checks that a service reads the forwarded path as the rules matched it.
func FuzzForwardedPath(f *testing.F) {
	for _, seed := range []string{"/v1/product", "//a/../b", "/%2e%2e/x", "/a%2Fb", "/a%2F../b", "/..;/x", "/%", "*", "/a/.", "/?x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Host != "" || u.Opaque != "" {
			return
		}
		var req headgate.Request
		r := &http.Request{URL: u, RequestURI: target, Host: "a", RemoteAddr: "192.0.2.1:1"}
		strict := identify(new(headgate.Request), r, 0, false)
		if identify(&req, r, 0, true) != nil {
			if !errors.Is(strict, ErrPath) {
				t.Errorf("%q is refused with ResolvePath, and passes without: %v", target, strict)
			}
			return
		}
		if changed := u.Path != "" && req.Path != u.Path; changed != (strict != nil) {
			t.Errorf("%q is matched as %q; without resolving: %v", target, req.Path, strict)
		}
		forward := resolved(r, req.Path)
		sent, err := url.ParseRequestURI(forward.URL.RequestURI())
		if err != nil {
			t.Fatalf("%q is forwarded as %q: %v", target, forward.URL.RequestURI(), err)
		}
		if at, err := url.ParseRequestURI(forward.RequestURI); err != nil || at.EscapedPath() != forward.URL.EscapedPath() && at.Path != "" {
			t.Errorf("%q is forwarded as %q, with the RequestURI %q", target, forward.URL.EscapedPath(), forward.RequestURI)
		}
		if got := sent.Path; got != req.Path {
			t.Errorf("%q is matched as %q, but a service reads %q", target, req.Path, got)
		}
		if p := strings.TrimSuffix(req.Path, "/"); p != "" && path.Clean(p) != p {
			t.Errorf("%q is matched as %q, which is not resolved", target, req.Path)
		}
	})
}
