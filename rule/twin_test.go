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
		if (m.Domain == "" || slowPattern(textValue, m.Domain, req.Domain)) && (req.Domain == "" || asked) && scanPath(m.Path, req.Path) && scanMethods(m.Methods, req.Method) && scanHosts(m.Hosts, req.Host) &&
			scanValues(m.Headers, req.Header) && scanValues(m.Descriptors, req.Descriptors) && scanBody(m, req.Body) &&
			(m.Not == nil || !scanBody(m.Not, req.Body)) {
			found = append(found, i)
		}
	}
	return found
}

func scanBody(m *Match, body *headgate.Body) bool {
	var fields headgate.Values
	if body != nil {
		fields = body.Fields
	}
	return scanValues(m.JSON, fields) && (m.Model == "" || scanValues(map[string]string{"model": m.Model}, fields))
}

func scanPath(pattern, path string) bool {
	return pattern == "" || slowPattern(textPath, pattern, path)
}

func scanMethods(methods []string, method string) bool {
	return len(methods) == 0 || slices.ContainsFunc(methods, func(pattern string) bool {
		return slowPattern(textMethod, pattern, method) || method == "HEAD" && slowPattern(textMethod, pattern, "GET")
	})
}

func scanHosts(hosts []string, host string) bool {
	return len(hosts) == 0 || slices.ContainsFunc(hosts, func(pattern string) bool { return slowPattern(textHost, pattern, host) })
}

func scanValues(wanted map[string]string, values headgate.Values) bool {
	for name, want := range wanted {
		if values == nil {
			return false
		}
		got, _ := values.Lookup(name)
		if got == "" || !slowPattern(textValue, want, got) {
			return false
		}
	}
	return true
}

// A small set of pieces makes matches between rules and requests likely.
var (
	twinPaths   = []string{"", "/*", "/", "/a", "/a/", "/a/*", "/a/b", "/a/b/*", "/ab", "/ab/*", "/a/b/c/d/*"}
	twinMethods = []string{"GET", "PUT", "HEAD", "P*", "re:G.T|PUT"}
	twinHosts   = []string{"com", "a.com", "b.com", "*.com", "*.a.com", "*.b.com", "x.a.com", "X.A.com", "{x}.com", "{y}.{x}.com", "*.{x}.com", "a*", "{x}.A.com"}
	twinValues  = []string{"1", "2", "*", "1*", "{x}2", "re:[12]"}
	twinNames   = []string{"A", "B", "C"}
)

func drawnPath(t *property.T) string {
	if property.Bool().Draw(t, "plain") {
		return property.SampledFrom(twinPaths).Draw(t, "path")
	}
	path := drawnPattern(t, textPath)
	if _, f := compilePath(path); f == (fault{}) {
		return path
	}
	return property.SampledFrom([]string{"re:/a(/b)?", "re:/[ab]+/.*"}).Draw(t, "expression")
}

func drawRules(t *property.T) []Rule {
	match := property.Custom(func(t *property.T) Match {
		return Match{
			Path:    drawnPath(t),
			Methods: property.SliceOfN(property.SampledFrom(twinMethods), 0, 2).Draw(t, "methods"),
			Hosts:   property.SliceOfN(property.SampledFrom(twinHosts), 0, 3).Draw(t, "hosts"),
			Headers: property.MapOfN(property.SampledFrom(twinNames), property.SampledFrom(twinValues), 0, 3).Draw(t, "headers"),

			Domain:      property.SampledFrom([]string{"", "", "1", "2"}).Draw(t, "domain"),
			Descriptors: property.MapOfN(property.SampledFrom(twinNames), property.SampledFrom(twinValues), 0, 2).Draw(t, "descriptors"),

			JSON:  property.MapOfN(property.SampledFrom(twinNames), property.SampledFrom(twinValues), 0, 2).Draw(t, "json"),
			Model: property.SampledFrom([]string{"", "", "1", "1*"}).Draw(t, "model"),
			Not:   property.SampledFrom([]*Match{nil, nil, {Model: "2"}, {JSON: map[string]string{"A": "*"}}}).Draw(t, "not"),
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
			"", "*", "/1/a", "/a/1/b", "/b/a-1", "/a.b", "/ab/b/a", "/vab", "/b/vab/a", "/", "//", "/a", "/a/", "/a/b", "/a/b/", "/a/bc", "/ab", "/ab/a", "/a/b/c", "/a/b/c/d", "/a/b/c/d/e", "a",
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
	if fields := property.MapOfN(property.SampledFrom(append(twinNames, "model")), values, 0, 4).Draw(t, "fields"); len(fields) > 0 {
		req.Body = &headgate.Body{Fields: sent(fields)}
	}
	return req
}

func beforeBody(rules []Rule) []Rule {
	early := make([]Rule, len(rules))
	for i := range rules {
		early[i] = rules[i].BeforeBody()
	}
	return early
}

func TestIndexIsTheScan(t *testing.T) {
	property.Check(t, func(t *property.T) {
		rules := drawRules(t)
		x, err := NewIndex(rules)
		if err != nil {
			t.Fatal(err)
		}
		early, err := NewIndex(beforeBody(rules))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			req := drawRequest(t)
			if i%2 > 0 && len(rules) > 0 { // Made from a rule, and mutated.
				m := &rules[property.IntRange(0, len(rules)-1).Draw(t, "of")].Match
				req.Path = made(t, m.Path)
				if len(m.Hosts) > 0 {
					req.Host = made(t, strings.ToLower(m.Hosts[0]))
				}
			}
			if got, want := x.Match(req, nil), scan(rules, req); !slices.Equal(got, want) {
				t.Fatalf("%s %s%s %v %v %v: got matches %v, want %v of the twin", req.Method, req.Host, req.Path, req.Header, req.Descriptors, req.Body, got, want)
			}
			body := req.Body
			req.Body = nil
			maybe := early.Match(req, nil)
			for _, i := range scan(rules, &headgate.Request{
				Method: req.Method, Host: req.Host, Path: req.Path, Header: req.Header, Domain: req.Domain, Descriptors: req.Descriptors, Body: body,
			}) {
				if !slices.Contains(maybe, i) {
					t.Fatalf("rule %d matches with a body and is not among %v before the body is known", i, maybe)
				}
			}
		}
	})
}
