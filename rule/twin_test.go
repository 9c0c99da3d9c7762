package rule

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/property"
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

func drawRules(t *property.T) []Rule {
	match := property.Custom(func(t *property.T) Match {
		return Match{
			Path:    property.SampledFrom(twinPaths).Draw(t, "path"),
			Methods: property.SliceOfN(property.SampledFrom(twinMethods), 0, 2).Draw(t, "methods"),
			Hosts:   property.SliceOfN(property.SampledFrom(twinHosts), 0, 3).Draw(t, "hosts"),
			Headers: property.MapOfN(property.SampledFrom(twinNames), property.SampledFrom(twinValues), 0, 3).Draw(t, "headers"),

			Domain:      property.SampledFrom([]string{"", "", "1", "2"}).Draw(t, "domain"),
			Descriptors: property.MapOfN(property.SampledFrom(twinNames), property.SampledFrom(twinValues), 0, 2).Draw(t, "descriptors"),
		}
	})
	few := property.SampledFrom([]int{0, 10, 40}).Draw(t, "at least")
	matches := property.SliceOfN(match, few, 60).Draw(t, "matches")
	// Many rules of one path need the child nodes below the path.
	if len(matches) > 0 && property.Bool().Draw(t, "one path") {
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

func drawRequest(t *property.T) *headgate.Request {
	req := &headgate.Request{
		Method: property.SampledFrom([]string{"GET", "PUT", "get", ""}).Draw(t, "method"),
		Host:   property.SampledFrom([]string{"", "com", "a.com", ".com", "b.com", "x.a.com", "y.x.a.com", "..b.com", "x.b.com.", "aacom"}).Draw(t, "host"),
		Path: property.SampledFrom([]string{
			"", "*", "/", "//", "/a", "/a/", "/a/b", "/a/b/", "/a/bc", "/ab", "/ab/a", "/a/b/c", "/a/b/c/d", "/a/b/c/d/e", "a",
		}).Draw(t, "path"),
	}
	req.Domain = property.SampledFrom([]string{"", "", "1", "2", "3"}).Draw(t, "domain")
	values := property.SampledFrom([]string{"", "1", "2", "3", "*"})
	if headers := property.MapOfN(property.SampledFrom(twinNames), values, 0, 3).Draw(t, "headers"); len(headers) > 0 {
		req.Header = sent(headers)
	}
	if entries := property.MapOfN(property.SampledFrom(twinNames), values, 0, 3).Draw(t, "descriptors"); len(entries) > 0 {
		req.Descriptors = sent(entries).entries()
	}
	return req
}

func TestIndexIsTheScan(t *testing.T) {
	property.Check(t, func(t *property.T) {
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
