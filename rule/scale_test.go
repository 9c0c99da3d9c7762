package rule

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/headgate/headgate"
)

// This file checks that a lookup in many rules costs about as much as in few rules. The
// tests count the tested entries, so the result is the same on every machine. The
// benchmarks measure time.

// shape is a set of rules that differ in one attribute. A request with number i in its
// path, host and header matches rule i.
type shape struct {
	name  string
	match func(i int) Match
	path  string // of the requests, with # for the number
}

var shapes = []shape{
	{"exact paths", func(i int) Match { return Match{Path: item(i)} }, "/v1/item-#"},
	{"prefixes", func(i int) Match { return Match{Path: item(i) + "/*"} }, "/v1/item-#/below/it"},
	{"templates", func(i int) Match { return Match{Path: item(i) + "/{id}/it"} }, "/v1/item-#/below/it"},
	{"templates with a rest", func(i int) Match { return Match{Path: "/{version}" + item(i)[len("/v1"):] + "/{id}/**"} }, "/v1/item-#/below/it"},
	{"templates, parts of segments", func(i int) Match { return Match{Path: item(i) + "-{id}"} }, "/v1/item-#-below"},
	{"one path, hosts", func(i int) Match { return Match{Path: "/v1/item", Hosts: []string{host(i)}} }, "/v1/item"},
	{"one path, hosts below", func(i int) Match { return Match{Path: "/v1/item", Hosts: []string{"*." + host(i)}} }, "/v1/item"},
	{"one path, templates of hosts", func(i int) Match { return Match{Path: "/v1/item", Hosts: []string{"{tenant}." + host(i)}} }, "/v1/item"},
	{"one path, header values", func(i int) Match { return Match{Path: "/v1/item", Headers: tenant(i)} }, "/v1/item"},
	{"one prefix, header values", func(i int) Match { return Match{Path: "/v1/*", Headers: tenant(i)} }, "/v1/item"},
	{"every path, hosts", func(i int) Match { return Match{Hosts: []string{host(i)}} }, "/v1/item-#"},
	{"every path, header values", func(i int) Match { return Match{Path: "/*", Headers: tenant(i)} }, "/v1/item-#"},
	{"one path, hosts by header values", func(i int) Match {
		return Match{Path: "/v1/item", Hosts: []string{host(i % 100)}, Headers: tenant(i / 100)}
	}, "/v1/item"},
	{"one path, entries", func(i int) Match { return Match{Path: "/v1/item", Descriptors: asked(i)} }, "/v1/item"},
	{"every path, entries", func(i int) Match { return Match{Descriptors: asked(i)} }, "/v1/item-#"},
	{"every path, headers and entries of one name", func(i int) Match {
		if i%2 == 0 {
			return Match{Headers: tenant(i)}
		}
		return Match{Descriptors: tenant(i)}
	}, "/v1/item-#"},
	{"mixture", mixed, "/v1/item-#/below/it"},
}

func item(i int) string              { return fmt.Sprintf("/v1/item-%07d", i) }
func host(i int) string              { return fmt.Sprintf("h%07d.example.com", i) }
func tenant(i int) map[string]string { return map[string]string{"X-Tenant": fmt.Sprintf("t%07d", i)} }

func asked(i int) map[string]string {
	return map[string]string{"tenant": fmt.Sprintf("t%07d", i), "plan": "*"}
}

// mixed alternates between the shapes.
func mixed(i int) Match {
	matches := []Match{
		{Path: item(i) + "/below/it"},
		{Path: item(i) + "/*"},
		{Path: item(i) + "/below/*", Methods: []string{"GET"}},
		{Path: "/v1/*", Hosts: []string{host(i)}},
		{Path: "/v1/*", Headers: tenant(i)},
		{Hosts: []string{host(i), "*." + host(i)}},
		{Headers: tenant(i), Methods: []string{"GET", "PUT"}},
		{Path: "/v1/*", Hosts: []string{host(i)}, Headers: tenant(i)},
		{Path: "/v1/*", Descriptors: asked(i)},
	}
	return matches[i%len(matches)]
}

func (s *shape) rules(n int) []Rule {
	rules := make([]Rule, n)
	for i := range rules {
		rules[i].Match = s.match(i)
	}
	return named(rules)
}

// caller builds numbered requests in place. Ten thousand prepared requests would not
// fit into the processor's caches and would distort the measurement.
type caller struct {
	req                headgate.Request
	path, host, tenant []byte
	pathAt             int
	grid               bool // each of a hundred hosts has a hundred tenants
	lookups            int
}

func newCaller(s *shape) *caller {
	c := &caller{host: []byte("x.h0000000.example.com"), tenant: []byte("t0000000"), grid: s.name == "one path, hosts by header values"}
	for i := range len(s.path) {
		if s.path[i] == '#' {
			c.pathAt = len(c.path)
			c.path = append(c.path, "0000000"...)
		} else {
			c.path = append(c.path, s.path[i])
		}
	}
	if s.name != "one path, hosts below" && s.name != "one path, templates of hosts" {
		c.host = c.host[2:]
	}
	c.req = headgate.Request{Method: "GET", Path: view(c.path), Host: view(c.host), Header: c}
	for _, name := range []string{"plan", "tenant", "X-Tenant"} {
		c.req.Descriptors = append(c.req.Descriptors, headgate.DescriptorEntry{Name: name, Value: view(c.tenant)})
	}
	return c
}

// view returns a string that shares its bytes with text. The bytes change later, which
// only this test may do.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

func (c *caller) Lookup(name string) (string, bool) {
	c.lookups++
	return view(c.tenant), name == "X-Tenant" || name == "tenant" || name == "plan"
}

// number writes i into the request.
func (c *caller) number(i int) *headgate.Request {
	inHost, inTenant := i, i
	if c.grid {
		inHost, inTenant = i%100, i/100
	}
	write(c.host[len(c.host)-len("0000000.example.com"):], inHost)
	write(c.tenant[1:], inTenant)
	if c.pathAt > 0 {
		write(c.path[c.pathAt:], i)
	}
	return &c.req
}

// write puts seven digits at the start of text.
func write(text []byte, number int) {
	for d := 6; d >= 0; d-- {
		text[d] = byte('0' + number%10)
		number /= 10
	}
}

// looked returns the largest number of entries that a lookup tests, and the number of
// headers and descriptor entries that it reads.
func (s *shape) looked(t *testing.T, n int) (rules, headers int) {
	t.Helper()
	x, c := newIndex(t, s.rules(n)), newCaller(s)
	for i := range n {
		c.lookups = 0
		one := search{index: x, req: c.number(i)}
		one.run()
		if !slices.Contains(one.found, i) {
			t.Fatalf("%s: rule %d of %d does not match its request", s.name, i, n)
		}
		rules, headers = max(rules, one.looked), max(headers, c.lookups)
	}
	return rules, headers
}

func TestManyRulesAreNotLookedAt(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			few, fewHeaders := s.looked(t, 10)
			many, manyHeaders := s.looked(t, 10_000)
			t.Logf("for 10 rules: %d tested rules, %d read headers; for 10,000 rules: %d and %d", few, fewHeaders, many, manyHeaders)
			if many > max(few, fewEntries) || manyHeaders > max(fewHeaders, fewEntries) {
				t.Errorf("for 10 rules: %d tested rules, %d read headers; for 10,000 rules: %d and %d", few, fewHeaders, many, manyHeaders)
			}
		})
	}
}

// Every header name costs a lookup for every request. The index therefore uses hosts
// first if they separate the rules equally well.
func TestHostsGoBeforeNamesOfHeaders(t *testing.T) {
	var rules []Rule
	for i := range 1000 {
		rules = append(rules, Rule{Match: Match{
			Hosts: []string{host(i / 2)}, Headers: map[string]string{fmt.Sprintf("X-%d", i): "*"},
		}})
	}
	c := newCaller(&shapes[0])
	newIndex(t, rules).Match(c.number(7), nil)
	if c.lookups > 2 {
		t.Errorf("%d headers are looked up", c.lookups)
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, s := range shapes {
		for _, n := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("%s/%d rules", s.name, n), func(b *testing.B) {
				x, c := newIndex(b, s.rules(n)), newCaller(&s)
				var found []int
				random := uint32(1)
				b.ReportAllocs()
				for b.Loop() {
					// The order is random, so that the processor cannot predict it.
					random = random*1664525 + 1013904223
					found = x.Match(c.number(int(uint64(random)*uint64(n)>>32)), found[:0])
				}
			})
		}
	}
}

func BenchmarkAppendKey(b *testing.B) {
	req := get("/v1/product")
	req.Header = sent{"X-Client-Id": "customer-42"}
	for _, key := range [][]string{{"ip"}, {"header:X-Client-Id"}, {"ip", "path", "header:X-Client-Id"}} {
		b.Run(fmt.Sprint(key), func(b *testing.B) {
			r := Rule{Name: "product", Key: parts(b, key...)}
			room := make([]byte, 0, 256)
			b.ReportAllocs()
			for b.Loop() {
				r.AppendKey(room, req)
			}
		})
	}
}
