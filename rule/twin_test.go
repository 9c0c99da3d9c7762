package rule

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate"
)

// scan is the twin of the index: it compares every rule, field by field.
func scan(rules []Rule, req *headgate.Request) []int {
	var found []int
	for i := range rules {
		m := &rules[i].Match
		asked := m.Domain != "" || len(m.Descriptors) > 0
		if (m.Domain == "" || m.Domain == req.Domain) && (req.Domain == "" || asked) && scanPath(m.Path, req.Path) && scanMethods(m.Methods, req.Method) && scanHosts(m.Hosts, req.Host) &&
			scanValues(m.Headers, req.Header) && scanValues(m.Descriptors, req.Descriptors) {
			found = append(found, i)
		}
	}
	return found
}

func scanPath(pattern, path string) bool {
	if pattern == "" || pattern == "/*" {
		return true
	}
	if prefix, ok := strings.CutSuffix(pattern, "/*"); ok {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return path == pattern
}

func scanMethods(methods []string, method string) bool {
	return len(methods) == 0 || slices.Contains(methods, method) || method == "HEAD" && slices.Contains(methods, "GET")
}

func scanHosts(hosts []string, host string) bool {
	if len(hosts) == 0 {
		return true
	}
	for _, pattern := range hosts {
		pattern = strings.ToLower(pattern)
		if end, ok := strings.CutPrefix(pattern, "*"); ok {
			if before, ok := strings.CutSuffix(host, end); ok && before != "" {
				return true
			}
		}
		if host == pattern {
			return true
		}
	}
	return false
}

func scanValues(wanted map[string]string, values headgate.Values) bool {
	for name, want := range wanted {
		if values == nil {
			return false
		}
		got, _ := values.Lookup(name)
		if got == "" || want != "*" && got != want {
			return false
		}
	}
	return true
}

// A small set of pieces makes matches between rules and requests likely.
var (
	twinPaths   = []string{"", "/*", "/", "/a", "/a/", "/a/*", "/a/b", "/a/b/*", "/ab", "/ab/*", "/a/b/c/d/*"}
	twinMethods = []string{"GET", "PUT", "HEAD"}
	twinHosts   = []string{"com", "a.com", "b.com", "*.com", "*.a.com", "*.b.com", "x.a.com", "X.A.com"}
	twinValues  = []string{"1", "2", "*"}
	twinNames   = []string{"A", "B", "C"}
)

func drawRules(t *rapid.T) []Rule {
	match := rapid.Custom(func(t *rapid.T) Match {
		return Match{
			Path:    rapid.SampledFrom(twinPaths).Draw(t, "path"),
			Methods: rapid.SliceOfN(rapid.SampledFrom(twinMethods), 0, 2).Draw(t, "methods"),
			Hosts:   rapid.SliceOfN(rapid.SampledFrom(twinHosts), 0, 3).Draw(t, "hosts"),
			Headers: rapid.MapOfN(rapid.SampledFrom(twinNames), rapid.SampledFrom(twinValues), 0, 3).Draw(t, "headers"),

			Domain:      rapid.SampledFrom([]string{"", "", "1", "2"}).Draw(t, "domain"),
			Descriptors: rapid.MapOfN(rapid.SampledFrom(twinNames), rapid.SampledFrom(twinValues), 0, 2).Draw(t, "descriptors"),
		}
	})
	few := rapid.SampledFrom([]int{0, 10, 40}).Draw(t, "at least")
	matches := rapid.SliceOfN(match, few, 60).Draw(t, "matches")
	// Many rules of one path need the child nodes below the path.
	if len(matches) > 0 && rapid.Bool().Draw(t, "one path") {
		for i := range matches {
			matches[i].Path = matches[0].Path
		}
	}
	var rules []Rule
	for _, m := range matches {
		rules = append(rules, Rule{Match: m})
	}
	return named(rules)
}

func drawRequest(t *rapid.T) *headgate.Request {
	req := &headgate.Request{
		Method: rapid.SampledFrom([]string{"GET", "PUT", "get", ""}).Draw(t, "method"),
		Host:   rapid.SampledFrom([]string{"", "com", "a.com", ".com", "b.com", "x.a.com", "y.x.a.com", "..b.com", "x.b.com.", "aacom"}).Draw(t, "host"),
		Path: rapid.SampledFrom([]string{
			"", "*", "/", "//", "/a", "/a/", "/a/b", "/a/b/", "/a/bc", "/ab", "/ab/a", "/a/b/c", "/a/b/c/d", "/a/b/c/d/e", "a",
		}).Draw(t, "path"),
	}
	req.Domain = rapid.SampledFrom([]string{"", "", "1", "2", "3"}).Draw(t, "domain")
	values := rapid.SampledFrom([]string{"", "1", "2", "3", "*"})
	if headers := rapid.MapOfN(rapid.SampledFrom(twinNames), values, 0, 3).Draw(t, "headers"); len(headers) > 0 {
		req.Header = sent(headers)
	}
	if entries := rapid.MapOfN(rapid.SampledFrom(twinNames), values, 0, 3).Draw(t, "descriptors"); len(entries) > 0 {
		req.Descriptors = sent(entries).entries()
	}
	return req
}

func TestIndexIsTheScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules(t)
		x, err := NewIndex(rules)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			req := drawRequest(t)
			if got, want := x.Match(req, nil), scan(rules, req); !slices.Equal(got, want) {
				t.Fatalf("%s %s%s %v %v: got matches %v, want %v of the twin", req.Method, req.Host, req.Path, req.Header, req.Descriptors, got, want)
			}
		}
	})
}
