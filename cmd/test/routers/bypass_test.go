package routers_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/middleware/httplimit"
)

// targets are ways to write a path that leads to the handler of /admin/*, or might.
var targets = []string{
	"/admin/x", "/admin/", "/admin", "/admin/../x", "/admin/./x", "/admin/x/..", "/admin/../../x", "/x/../admin/y",
	"/admin/%2e%2e/x", "/admin/.%2E/x", "/admin/%2e/x", "/x/%2e%2e/admin/y", "/admin/..%2fx", "/admin%2f..%2fx",
	"//admin/x", "/admin//x", "///admin///x", "/./admin/x", "/admin%2fx", "/admin%2Fx", "/%2fadmin/x", "/admin/%2fx",
	"/%61dmin/x", "/admin/%78", "/admin/%252e%252e/x", "/admin/..;/x", "/admin/.;a=b/x", "/admin;a=b/x", "/admin/;/x",
	"/;/admin/x", `/admin\x`, "/admin%5c..%5cx", "/admin/%00", "/admin/x?a=/../", "/admin/..?", "/ADMIN/x", "/admin/x/",
	"http://service/admin/../x", "http://service//admin/x", "http://service/admin/x", "http://service",
}

// No way to write a path reaches the handler more often than its rule says, wherever
// the documents let the middleware stand.
func TestNoPathEvadesItsRule(t *testing.T) {
	s := new(service)
	for _, p := range placements(s) {
		t.Run(p.line+"/"+p.name, func(t *testing.T) {
			for _, target := range targets {
				s.attack(t, p.build(limited(t, httplimit.Options{})), target)
				if p.resolving == safe {
					s.attack(t, p.build(limited(t, httplimit.Options{ResolvePath: true})), target)
				}
			}
		})
	}
}

// attack sends a target three times to a new server, after an ordinary request that
// takes all that the rule allows.
func (s *service) attack(t *testing.T, h http.Handler, target string) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	*s = service{}
	if status := get(t, server, "/admin/first"); status != http.StatusOK || s.admin != 1 {
		t.Fatalf("the first request has the status %d, and the handler was reached %d times", status, s.admin)
	}
	if status := get(t, server, "/open"); status != http.StatusOK || s.other != 1 {
		t.Fatalf("/open has the status %d, and its handler was reached %d times", status, s.other)
	}
	for range 3 {
		get(t, server, target)
	}
	if s.admin != 1 {
		t.Errorf("GET %s reached the handler %d times past its rule", target, s.admin-1)
	}
}

// Where the documents say that ResolvePath is not safe, it is not: a router that gives
// it up there would let us say more.
func TestResolvingInsideARouterIsEvaded(t *testing.T) {
	s := new(service)
	for _, p := range placements(s) {
		if p.resolving != evaded {
			continue
		}
		t.Run(p.line+"/"+p.name, func(t *testing.T) {
			for _, target := range targets {
				if s.evades(t, p.build(limited(t, httplimit.Options{ResolvePath: true})), target) {
					return
				}
			}
			t.Error("ResolvePath is safe here: say so in docs/middleware.md")
		})
	}
}

func (s *service) evades(t *testing.T, h http.Handler, target string) bool {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	*s = service{}
	for range 3 {
		get(t, server, target)
	}
	return s.admin > 1
}

// The table of the documents has the placements that are tested, and says of them what
// the tests above hold. "Evaded" stands where at least one configuration is.
func TestTheTableIsTested(t *testing.T) {
	document, err := os.ReadFile("../../../docs/middleware.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, p := range placements(new(service)) {
		if p.resolving == safe && want[p.line] == "" {
			want[p.line] = "| " + p.line + " | guarded | guarded |"
		} else if p.resolving == evaded {
			want[p.line] = "| " + p.line + " | guarded | evaded |"
		}
	}
	lines := strings.Split(string(document), "\n")
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("docs/middleware.md lacks the line %q", line)
		}
	}
	listed := slices.DeleteFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "| ") || !strings.Contains(l, "| guarded |") })
	if len(listed) != len(want) {
		t.Errorf("docs/middleware.md has %d placements, and %d are tested: %q", len(listed), len(want), listed)
	}
}
