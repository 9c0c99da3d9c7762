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
