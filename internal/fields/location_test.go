package fields

import (
	"net/url"
	"strings"
	"testing"
)

func TestLocation(t *testing.T) {
	for _, c := range []struct{ template, path, want string }{
		{"https://queue.example/", "/v1/x", "https://queue.example/"},
		{"https://queue.example{path}", "/v1/x", "https://queue.example/v1/x"},
		{"https://queue.example/{path}", "/v1/x", "https://queue.example/v1/x"},
		{"https://queue.example/?from={path}&to={path}", "/v1/x", "https://queue.example/?from=/v1/x&to=/v1/x"},
		{"https://queue.example:8443/wait{path}", "/", "https://queue.example:8443/wait/"},
		{"/slow{path}", "/v1/x", "/slow/v1/x"},
		{"{path}", "/v1/x", "/v1/x"},
		{"/?x=a:b{path}", "/v1", "/?x=a:b/v1"},
		// Bytes other than letters, digits, -._~ and slashes are escaped in paths and queries.
		{"/q?from={path}", "/a b&admin=1#x?y=z;v", "/q?from=/a%20b%26admin%3D1%23x%3Fy%3Dz%3Bv"},
		{"https://queue.example{path}", "/@evil.example:80", "https://queue.example/%40evil.example%3A80"},
		{"/q{path}", "/a\r\nSet-Cookie: x=é", "/q/a%0D%0ASet-Cookie%3A%20x%3D%C3%A9"},
		// The path does not become a host.
		{"/{path}", "/evil.example", "/evil.example"},
		{"{path}", "//evil.example", "/evil.example"},
		{"/{path}", "///evil.example", "/evil.example"},
		{"//{path}", "/evil.example", "//"},
		{"https://{path}", "/evil.example", "https://"},
		{"https:{path}", "/evil.example", "https:"},
	} {
		if got := Location(c.template, c.path); got != c.want {
			t.Errorf("Location(%q, %q) = %q, want %q", c.template, c.path, got, c.want)
		}
	}
}

// FuzzLocation checks that a Location leads to the host of the template, and that the path
// can be recovered from it, for any path.
func FuzzLocation(f *testing.F) {
	for _, seed := range []string{"/", "/v1/x", "//evil.example", "/a b?c#d", "/\r\nX: y", "/é\xff", `/\evil.example`, "/%2f%2fevil"} {
		f.Add(seed)
	}
	base := &url.URL{Scheme: "https", Host: "service.example", Path: "/at"}
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") {
			return // Exchange refuses such a path.
		}
		want := "/" + strings.TrimLeft(path, "/")
		for template, host := range map[string]string{
			"{path}": "service.example", "/{path}": "service.example", "https://queue.example{path}": "queue.example",
			"//queue.example/{path}": "queue.example",
		} {
			to, err := base.Parse(Location(template, path))
			if err != nil {
				t.Fatalf("path %q in template %q: %v", path, template, err)
			}
			// Parse resolves dot segments. The Path of an Exchange has none.
			if to.Host != host || to.RawQuery != "" || to.Fragment != "" || !strings.Contains(path, ".") && to.Path != want {
				t.Errorf("path %q in template %q leads to %q", path, template, to)
			}
		}
		to, err := base.Parse(Location("/q?from={path}", path))
		if err != nil || to.Query().Get("from") != want || len(to.Query()) != 1 {
			t.Errorf("path %q as a parameter leads to %q: %v", path, to, err)
		}
	})
}
