package rule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
)

// Each case is a request to one set of rules.
func TestMatch(t *testing.T) {
	rules := []Rule{
		0: {Match: Match{Path: "/v1/product", Methods: []string{"GET"}}},
		1: {Match: Match{Path: "/search/*"}},
		2: {Match: Match{Path: "/*"}},
		3: {Match: Match{}},
		4: {Match: Match{Path: "/search/*", Hosts: []string{"api.example.com", "*.example.com"}}},
		5: {Match: Match{Hosts: []string{"*.example.com", "*.eu.example.com"}}},
		6: {Match: Match{Path: "/v1/product", Headers: map[string]string{"x-tenant": "a"}}},
		7: {Match: Match{Headers: map[string]string{"X-Tenant": "*", "X-Debug": "1"}}},
		8: {Match: Match{Path: "/search/deep/*", Hosts: []string{"API.example.com"}}},
		9: {Match: Match{Path: "/"}},
		// The following rules differ in one attribute each.
		10: {Match: Match{Path: "/ip", Hosts: []string{"192.0.2.1"}}},
		11: {Match: Match{Path: "/ip", Hosts: []string{"[2001:DB8::0:1]"}}},
		12: {Match: Match{Path: "/ip", Hosts: []string{"2001:db8::2"}}},
		13: {Match: Match{Path: "/ip", Hosts: []string{"localhost"}}},
		14: {Match: Match{Path: "/ip", Hosts: []string{"*.com"}}},
	}
	const every = "2 3"
	for _, c := range []struct {
		why    string
		method string
		host   string
		path   string
		header sent
		want   string
	}{
		{"an exact path", "GET", "", "/v1/product", nil, "0 " + every},
		{"a method that no rule of the path accepts", "POST", "", "/v1/product", nil, every},
		{"methods are case-sensitive", "get", "", "/v1/product", nil, every},
		{"a path below an exact one", "GET", "", "/v1/product/1", nil, every},
		{"paths are case-sensitive", "GET", "", "/V1/product", nil, every},
		{"an additional slash makes another path", "GET", "", "/v1/product/", nil, every},
		{"the root", "GET", "", "/", nil, every + " 9"},
		{"no path at all", "OPTIONS", "", "", nil, every},
		{"the path of OPTIONS *", "OPTIONS", "", "*", nil, every},

		{"a prefix includes its own path", "GET", "", "/search", nil, "1 " + every},
		{"a prefix includes its own path with a slash", "GET", "", "/search/", nil, "1 " + every},
		{"a prefix includes paths below it", "GET", "", "/search/a/b", nil, "1 " + every},
		{"a prefix excludes paths with the same first letters", "GET", "", "/searching", nil, every},
		{"a prefix in a prefix", "GET", "api.example.com", "/search/deep/er", nil, "1 2 3 4 5 8"},

		{"a rule that matches by two hosts is found once", "GET", "api.example.com", "/search", nil, "1 2 3 4 5"},
		{"a host below a host", "GET", "x.y.eu.example.com", "/", nil, "2 3 5 9"},
		{"a wildcard excludes the domain itself", "GET", "example.com", "/", nil, every + " 9"},
		{"a wildcard excludes hosts with the same last letters", "GET", "badexample.com", "/", nil, every + " 9"},
		{"a wildcard excludes an empty name", "GET", ".example.com", "/", nil, every + " 9"},

		{"an IPv4 host", "GET", "192.0.2.1", "/ip", nil, every + " 10"},
		{"an IPv6 host", "GET", "2001:db8::1", "/ip", nil, every + " 11"},
		{"another", "GET", "2001:db8::2", "/ip", nil, every + " 12"},
		{"a host of one label", "GET", "localhost", "/ip", nil, every + " 13"},
		{"a host below a label", "GET", "a.b.com", "/ip", nil, every + " 14"},
		{"no host below a label", "GET", ".com", "/ip", nil, every},

		{"a header with its value", "POST", "", "/v1/product", sent{"X-Tenant": "a"}, every + " 6"},
		{"with another", "POST", "", "/v1/product", sent{"X-Tenant": "A"}, every},
		{"a header with any value, and a second header", "POST", "", "/x", sent{"X-Tenant": "b", "X-Debug": "1"}, every + " 7"},
		{"without the first", "POST", "", "/x", sent{"X-Debug": "1"}, every},
		{"an empty header counts as missing", "POST", "", "/x", sent{"X-Tenant": "", "X-Debug": "1"}, every},
	} {
		t.Run(c.why, func(t *testing.T) {
			req := &headgate.Request{Method: c.method, Host: c.host, Path: c.path}
			if c.header != nil {
				req.Header = c.header
			}
			got := newIndex(t, rules).Match(req, nil)
			if text := strings.Trim(fmt.Sprint(got), "[]"); text != c.want {
				t.Errorf("matches %s, want %s", text, c.want)
			}
		})
	}
}

// Descriptor entries match like headers, but their names are case-sensitive.
func TestMatchDescriptors(t *testing.T) {
	rules := []Rule{
		0: {Match: Match{Descriptors: map[string]string{"tenant": "a"}}},
		1: {Match: Match{Descriptors: map[string]string{"tenant": "*", "plan": "gold plated"}}},
		2: {Match: Match{Descriptors: map[string]string{"Tenant": "a"}}},
		3: {Match: Match{Headers: map[string]string{"Tenant": "a"}}},
		4: {Match: Match{Headers: map[string]string{"Tenant": "a"}, Descriptors: map[string]string{"tenant": "a"}}},
		5: {Match: Match{Path: "/a", Descriptors: map[string]string{"tenant": "a"}}},
	}
	for _, c := range []struct {
		why    string
		asked  sent
		header sent
		want   []int
	}{
		{"no entry", nil, nil, nil},
		{"an entry with its value", sent{"tenant": "a"}, nil, []int{0}},
		{"with another", sent{"tenant": "b"}, nil, nil},
		{"a header with any value, and a second header", sent{"tenant": "b", "plan": "gold plated"}, nil, []int{1}},
		{"without the first", sent{"plan": "gold plated"}, nil, nil},
		{"names are case-sensitive", sent{"Tenant": "a"}, nil, []int{2}},
		{"values are case-sensitive", sent{"tenant": "A"}, nil, nil},
		{"a header is not an entry", nil, sent{"Tenant": "a", "tenant": "a"}, []int{3}},
		{"header and entry", sent{"tenant": "a"}, sent{"Tenant": "a"}, []int{0, 3, 4}},
		{"an empty entry counts as missing", sent{"tenant": "", "plan": "gold plated"}, nil, nil},
	} {
		req := &headgate.Request{Path: "/", Descriptors: c.asked.entries(), Header: c.header}
		if got := newIndex(t, rules).Match(req, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: matches %v, want %v", c.why, got, c.want)
		}
	}
}

// The first of several entries with one name counts, whatever entries are between them.
func TestMatchFirstOfRepeatedDescriptors(t *testing.T) {
	tenant := func(value string) Rule { return Rule{Match: Match{Descriptors: map[string]string{"tenant": value}}} }
	x := newIndex(t, []Rule{tenant("a"), tenant("b"), tenant("*")})
	key := parts(t, "descriptor:tenant")
	for _, c := range []struct {
		asked headgate.Descriptors
		want  []int
		key   string
	}{
		{headgate.Descriptors{{Name: "tenant", Value: "a"}, {Name: "tenant", Value: "b"}}, []int{0, 2}, "a"},
		{headgate.Descriptors{{Name: "plan", Value: "x"}, {Name: "tenant", Value: "b"}, {Name: "plan", Value: "y"}, {Name: "tenant", Value: "a"}}, []int{1, 2}, "b"},
		{headgate.Descriptors{{Name: "tenant"}, {Name: "tenant", Value: "a"}}, nil, ""},
	} {
		req := &headgate.Request{Path: "/", Descriptors: c.asked}
		value, _ := key[0].lookup(req)
		if got := x.Match(req, nil); !slices.Equal(got, c.want) || value != c.key {
			t.Errorf("%v: got matches %v, want %v; got key %q, want %q", c.asked, got, c.want, value, c.key)
		}
	}
}

// newIndex builds an index for tests that do not use names and keys of rules.
func newIndex(tb testing.TB, rules []Rule) *Index {
	tb.Helper()
	x, err := NewIndex(named(rules))
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func named(rules []Rule) []Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].Name, rules[i].Key = fmt.Sprintf("r%d", i), anyKey()
	}
	return rules
}

func TestMatchAppends(t *testing.T) {
	x := newIndex(t, []Rule{{Match: Match{Path: "/a", Hosts: []string{"h", "h", "g"}}}, {}, {Match: Match{Path: "/a/*"}}})
	req := &headgate.Request{Host: "h", Path: "/a"}
	// Match leaves the values before its results unchanged, including duplicates.
	if got := x.Match(req, []int{7, 2, 2, 1}); !slices.Equal(got, []int{7, 2, 2, 1, 0, 1, 2}) {
		t.Errorf("got %v", got)
	}
	if got := x.Match(&headgate.Request{Path: "/b", Host: "h"}, nil); !slices.Equal(got, []int{1}) {
		t.Errorf("got %v", got)
	}
	var none Index
	if got := none.Match(req, nil); len(got) != 0 {
		t.Errorf("the zero Index: got matches %v, want none", got)
	}
}

// A rule with several hosts is in the index under each host. Its other conditions
// separate it from other rules there.
func TestMatchRulesOfSeveralHosts(t *testing.T) {
	var rules []Rule
	for range 2 * fewEntries {
		rules = append(rules, Rule{Match: Match{Hosts: []string{"a", "b"}, Headers: map[string]string{"X": "1", "Y": "1"}}})
	}
	x := newIndex(t, rules)
	for _, host := range []string{"a", "b"} {
		for want, header := range []sent{{"X": "1", "Y": "2"}, {"X": "1", "Y": "1"}} {
			req := &headgate.Request{Host: host, Header: header}
			if got := x.Match(req, nil); len(got) != want*len(rules) {
				t.Errorf("host %s with %v matches %v", host, header, got)
			}
		}
	}
}

// The index compares a long path only up to the largest depth of its rules.
func TestMatchDeepPaths(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("/s", n) }
	x := newIndex(t, []Rule{
		{Match: Match{Path: deep(1) + "/*"}},
		{Match: Match{Path: deep(maxSegments) + "/*"}},
		{Match: Match{Path: deep(maxSegments + 10)}}, // exact paths may have more segments
	})
	for _, c := range []struct {
		segments int
		want     []int
	}{
		{1, []int{0}},
		{maxSegments - 1, []int{0}},
		{maxSegments, []int{0, 1}},
		{maxSegments + 1, []int{0, 1}},
		{maxSegments + 10, []int{0, 1, 2}},
		{100 * maxSegments, []int{0, 1}},
	} {
		if got := x.Match(get(deep(c.segments)), nil); !slices.Equal(got, c.want) {
			t.Errorf("%d segments match %v, want %v", c.segments, got, c.want)
		}
	}
}

// The index keeps no value that the owner of the rules may change later.
func TestIndexOutlivesChangesToItsRules(t *testing.T) {
	rules := named([]Rule{{Match: Match{Methods: []string{"GET"}, Hosts: []string{"a"}, Headers: map[string]string{"X": "1"}, Descriptors: map[string]string{"x": "1"}}}})
	x, err := NewIndex(rules)
	if err != nil {
		t.Fatal(err)
	}
	m := &rules[0].Match
	m.Methods[0], m.Hosts[0], m.Headers["X"], m.Descriptors["x"] = "PUT", "b", "2", "2"
	req := &headgate.Request{Method: "GET", Host: "a", Path: "/", Header: sent{"X": "1"}, Descriptors: sent{"x": "1"}.entries()}
	if got := x.Match(req, nil); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	for _, s := range shapes {
		rules, req := s.rules(100), &headgate.Request{}
		x := newIndex(t, rules)
		req.Method, req.Header = "GET", sent{"X-Tenant": "t0000042"}
		req.Descriptors = sent{"tenant": "t0000042"}.entries()
		req.Host, req.Path = "h0000042.example.com", "/v1/item-0000042/below"
		room := make([]int, 0, 16)
		if n := testing.AllocsPerRun(100, func() { x.Match(req, room) }); n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
}

func TestNewIndexTeaches(t *testing.T) {
	header := func(name, value string) Match { return Match{Headers: map[string]string{name: value}} }
	entry := func(name, value string) Match { return Match{Descriptors: map[string]string{name: value}} }
	for _, c := range []struct {
		match Match
		want  string
	}{
		{Match{Path: "v1"}, `match.path "v1" does not begin with /: write "/v1"`},
		{Match{Path: "*"}, `match.path "*" does not begin with /: write "/*" for every path`},
		{Match{Path: "*.php"}, `match.path "*.php" does not begin with /: write "re:/.*\\.php"`},
		{Match{Path: "/a/**/b"}, `match.path "/a/**/b" has ** in the middle: write "re:/a/(.*/)?b"`},
		{Match{Path: "/a/**b"}, `match.path "/a/**b" has ** in the middle: write "re:/a/.*b"`},
		{Match{Path: "/{a}{b}"}, `match.path "/{a}{b}" has two variables without a text between them: write a text between them, or one variable`},
		{Match{Path: "/{a}/{a}"}, `match.path "/{a}/{a}" has two variables a: give them two names`},
		{Match{Path: "/{}"}, `match.path "/{}" has "{}", which is no variable: write one like {id}, {id:[0-9]+}, or {rest...} at the end`},
		{Match{Path: "/{id?}"}, `match.path "/{id?}" has "{id?}", which is no variable: write one like {id}, {id:[0-9]+}, or {rest...} at the end`},
		{Match{Path: "/{a...}/b"}, `match.path "/{a...}/b" has "{a...}", which is no variable: write one like {id}, {id:[0-9]+}, or {rest...} at the end`},
		{Match{Path: "/{id:int}"}, `match.path "/{id:int}" has a variable that matches only "int": write {id:[0-9]+} for digits`},
		{Match{Path: "/{id:[0-9}"}, `match.path "re:[0-9" is no expression of RE2: missing closing ]: ` + "`[0-9`" + `: correct it; https://golang.org/s/re2syntax lists the syntax`},
		{Match{Path: "/{" + strings.Repeat("a", 65) + "}"}, `match.path has a variable with a name of 65 bytes: use at most 64`},
		{Match{Path: "/" + strings.Repeat("*a", 17)}, `match.path has more than 16 variables: use fewer`},
		{Match{Path: strings.Repeat("/s", 65) + "/{a}"}, `match.path has 66 segments: use at most 64`},
		{Match{Path: "GET /users/{id}"}, `match.path "GET /users/{id}" begins with a method: write "/users/{id}", and GET as a method`},
		{Match{Path: "/api/:id/x"}, `match.path "/api/:id/x" looks like a pattern of another language: write "/api/{id}/x", or "=/api/:id/x" for exactly this text`},
		{Match{Path: "/a|/b"}, `match.path "/a|/b" looks like a pattern of another language: write "re:/a|/b", or "=/a|/b" for exactly this text`},
		{Match{Path: "^/api"}, `match.path "^/api" looks like a pattern of another language: write "re:/api.*"`},
		{Match{Path: "!/healthz"}, `match.path "!/healthz" looks like a pattern: a text cannot leave another one out: add not: {path: "/healthz"} to the match`},
		{Match{Path: "re:"}, `match.path has no expression after re:: write one, like "re:/v[0-9]+/.*"`},
		{Match{Path: "re:/("}, `match.path "re:/(" is no expression of RE2: missing closing ): ` + "`/(`" + `: correct it; https://golang.org/s/re2syntax lists the syntax`},
		{Match{Path: "re:/api"}, `match.path "re:/api" has no operators: write "/api", or "/api/*" for all paths below it`},
		{Match{Path: "re:^/a+"}, `match.path "re:^/a+" is compared with the whole text: write "re:/a+.*" for what begins so, or "re:/a+"`},
		{Match{Path: "re:/a+$"}, `match.path "re:/a+$" is compared with the whole text: write "re:.*/a+" for what ends so, or "re:/a+"`},
		{Match{Path: "re:a+"}, `match.path "re:a+" matches no path, because paths begin with /: write "re:/a+"`},
		{Match{Path: "re:/a*//v1"}, `match.path "re:/a*//v1" matches no path, because paths have no empty segments: write "re:/a*/v1"`},
		{Match{Path: "re:/" + strings.Repeat("a+", 300)}, `match.path has an expression of 601 bytes: use at most 512`},
		{Match{Path: "re:/(a{30}){30}"}, `match.path "re:/(a{30}){30}" is too large: use smaller repetitions or fewer choices: at most 480 instructions`},
		{Match{Path: "/a?b=c"}, `match.path "/a?b=c" has a query or a fragment: end the path before ? and #`},
		{Match{Path: "/a%20b"}, `match.path "/a%20b" is percent-encoded: write it decoded, as in /a b for /a%20b`},
		{Match{Path: "/a/../b"}, `match.path "/a/../b" has an empty, . or .. segment: write the cleaned path: "/b"`},
		{Match{Path: "/a//b"}, `match.path "/a//b" has an empty, . or .. segment: write the cleaned path: "/a/b"`},
		{Match{Path: "//*"}, `match.path "//*" has an empty, . or .. segment: write the cleaned path: "/*"`},
		{Match{Path: strings.Repeat("/s", 65) + "/*"}, `match.path is a prefix of 65 segments: use at most 64`},
		{Match{Path: "/" + strings.Repeat("a", 4096)}, `match.path is 4097 bytes long: use at most 4096`},
		{Match{Methods: []string{"GET", "get"}}, `match.methods[1] "get" is never sent: methods are case-sensitive: write GET`},
		{Match{Methods: []string{""}}, `match.methods[0] is empty: write a method like GET; leave methods out for every method`},
		{Match{Methods: []string{"GET,PUT"}}, `match.methods[0] "GET,PUT" is not one method: write [GET, PUT]`},
		{Match{Hosts: []string{""}}, `match.hosts[0] is empty: write a host like api.example.com; leave hosts out for every host`},
		{Match{Hosts: []string{"*"}}, `match.hosts[0] "*" has no name after the *: leave hosts out for every host`},
		{Match{Hosts: []string{"a.**.com"}}, `match.hosts[0] "a.**.com" has ** in the middle: write "re:a\\..*\\.com"`},
		{Match{Hosts: []string{"(a|b).example.com"}}, `match.hosts[0] "(a|b).example.com" looks like a pattern of another language: write "re:(a|b).example.com"`},
		{Match{Hosts: []string{".example.com"}}, `match.hosts[0] ".example.com" looks like a pattern of another language: write "*.example.com" for every name below it, or list the hosts`},
		{Match{Methods: []string{"!OPTIONS"}}, `match.methods[0] "!OPTIONS" looks like a pattern: a text cannot leave another one out: add not: {methods: [OPTIONS]} to the match, or list the methods that count, like [GET, POST]`},
		{Match{Hosts: []string{"a.com:80"}}, `match.hosts[0] "a.com:80" has a port: hosts are compared without port: write "a.com"`},
		{Match{Hosts: []string{"https://a.com/"}}, `match.hosts[0] "https://a.com/" is a URL or has a path: write only the host, like api.example.com`},
		{Match{Hosts: []string{"a..com"}}, `match.hosts[0] "a..com" has an empty label or a label over 63 bytes: write it like api.example.com, with no dot at the end`},
		{Match{Hosts: []string{"a.com."}}, `match.hosts[0] "a.com." has an empty label or a label over 63 bytes: write it like api.example.com, with no dot at the end`},
		{Match{Hosts: []string{strings.Repeat("a.", 127) + "a"}}, `match.hosts[0] is 255 bytes long: use at most 253`},
		{Match{Hosts: []string{"bücher.de"}}, `match.hosts[0] "bücher.de" contains "\xc3": write letters, digits, - and dots; an international name as xn--...`},
		{header("", "a"), `match.headers. has an invalid header name: write only letters, digits, - and _, like X-Tenant`},
		{header("X Y", "a"), `match.headers.X Y has an invalid header name: write only letters, digits, - and _, like X-Tenant`},
		{header("host", "a"), `match.headers.host is never present: use match.hosts`},
		{header("X", "(.*)"), `match.headers.X "(.*)" looks like a pattern of another language: write "re:(.*)", or "=(.*)" for exactly this text`},
		{header("X", "([0-9]+)"), `match.headers.X "([0-9]+)" looks like a pattern of another language: write "re:([0-9]+)", or "=([0-9]+)" for exactly this text`},
		{header("X", "(a+)b"), `match.headers.X "(a+)b" looks like a pattern of another language: write "re:(a+)b", or "=(a+)b" for exactly this text`},
		{header("X", "free|paid"), `match.headers.X "free|paid" looks like a pattern of another language: write "re:free|paid", or "=free|paid" for exactly this text`},
		{header("X", ""), `match.headers.X has no value: write the value, or "*" for any`},
		{header("X", "a "), `match.headers.X has the value "a ", which is not valid in a header: remove line breaks and the space around the value`},
		{header("X", "a\r\nY: b"), `match.headers.X has the value "a\r\nY: b", which is not valid in a header: remove line breaks and the space around the value`},
		{Match{Headers: map[string]string{"X-A": "1", "x-a": "2"}}, `match.headers.x-a duplicates "X-A": remove one of them`},
		{entry("tenant", ""), `match.descriptors.tenant has no value: write the value, or "*" for any`},
		{entry("", ""), `match.descriptors. has an empty name: write 1 to 128 printable characters without spaces, like tenant`},
		{entry("a b", "a"), `match.descriptors.a b has " " in its name: write 1 to 128 printable characters without spaces, like tenant`},
		{entry("a\u2003", "a"), "match.descriptors.a\u2003" + ` has "\u2003" in its name: write 1 to 128 printable characters without spaces, like tenant`},
		{entry(strings.Repeat("a", 129), "a"), "match.descriptors." + strings.Repeat("a", 129) + ` has a name of 129 bytes: write 1 to 128 printable characters without spaces, like tenant`},
	} {
		_, err := NewIndex(named([]Rule{{}, {Match: c.match}}))
		bad, ok := errortype.As[*RuleError](err)
		if want := "rule: rules[1]." + c.want; !ok || bad.Rule != 1 || bad.Error() != want {
			t.Errorf("%+v:\n got %v\nwant %s", c.match, err, want)
		}
	}
}

func TestNewIndexAccepts(t *testing.T) {
	for _, m := range []Match{
		{},
		{Path: "/"},
		{Path: "/a/"},
		{Path: "/100%"},
		{Path: "=/..."},
		{Path: "=/a/{id}/*"},
		{Path: "/~alice/*"},
		{Path: "/v1/items:batch"},
		{Path: "/odata/Users(1)/$count"},
		{Path: "/a b/ü/*"},
		{Methods: []string{"GET", "PURGE", "MKCALENDAR", "=x-custom"}},
		{Hosts: []string{"localhost", "10.0.0.1", "[2001:db8::1]", "2001:DB8::2", "API.Example.com", "xn--bcher-kva.de", "a_b.c"}},
		{Headers: map[string]string{"Accept": "=*/*", "x-b": "*", "User-Agent": "Mozilla/5.0 (X11; Linux x86_64)", "Referer": "https://a.example/?b=c+d", "X-C": "application/vnd.api+json;v=1"}},
		{Headers: map[string]string{"Accept": "*/*", "User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}},
		{Descriptors: map[string]string{"remote_address": "10.0.0.1", "a:b/c": " spaces\tand lines\n", "größe": "*", "A": "1", "a": "2"}},
	} {
		if _, err := NewIndex(named([]Rule{{Match: m}})); err != nil {
			t.Errorf("%+v gives %v", m, err)
		}
	}
}

func TestNewIndexNames(t *testing.T) {
	for _, c := range []struct {
		names string
		want  string
	}{
		{"a A a.b a-b a_b 1", ""},
		{strings.Repeat("n", 64), ""},
		{strings.Repeat("n", 65), `rule: rules[0].name is 65 bytes long: use 1 to 64 letters, digits, - _ and .`},
		{"a,", `rule: rules[1].name is empty: use 1 to 64 letters, digits, - _ and .`},
		{"a/b", `rule: rules[0].name "a/b" contains "/": use 1 to 64 letters, digits, - _ and .`},
		{"ä", `rule: rules[0].name "ä" contains "\xc3": use 1 to 64 letters, digits, - _ and .`},
		{"a b a", `rule: rules[2].name "a" is already the name of rules[0]: give each rule a unique name`},
	} {
		var rules []Rule
		for name := range strings.SplitSeq(strings.ReplaceAll(c.names, " ", ","), ",") {
			rules = append(rules, Rule{Name: name, Key: anyKey()})
		}
		_, err := NewIndex(rules)
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
			t.Errorf("%s:\n got %v\nwant %s", c.names, err, c.want)
		}
	}
}

// NewIndex reports all faults at once, in the order of the rules and their fields.
func TestNewIndexFindsAllFaults(t *testing.T) {
	_, err := NewIndex([]Rule{
		{Name: "a"},
		{Name: "a", Key: parts(t, "ip", "all"), Match: Match{Path: "x", Methods: []string{"GET", ""}}},
		{Name: "b", Key: parts(t, "ip", "path", "host", "method")},
	})
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, one := range all.Unwrap() {
		bad, _ := errortype.As[*RuleError](one)
		got = append(got, fmt.Sprintf("%d %s", bad.Rule, bad.Field))
	}
	want := []string{"0 key", "1 name", "1 key[1]", "1 match.path", "1 match.methods[1]", "2 key"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
