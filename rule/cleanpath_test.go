package rule

import (
	"net/url"
	"testing"
)

// TestCleanPath also checks that a clean path is its own clean path.
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
		got, err := CleanPath(u.Path, u.RawPath, true)
		if refused := c.want == ""; (err != nil) != refused || got != c.want {
			t.Errorf("CleanPath of %s = %q, %v, want %q", c.target, got, err, c.want)
		}
	}
	for _, resolves := range []bool{false, true} {
		if got, err := CleanPath("", "", resolves); got != "/" || err != nil {
			t.Errorf("CleanPath of the empty path = %q, %v, want /", got, err)
		}
	}
}
