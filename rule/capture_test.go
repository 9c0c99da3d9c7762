package rule

import (
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/testkit/property"
	"github.com/headgate/headgate/internal/testkit/race"
)

// bound returns a rule with one part, bound to its match.
func bound(t *testing.T, part string, m Match) *Rule {
	t.Helper()
	r := &Rule{Name: "r", Match: m, Key: parts(t, part)}
	if _, err := NewIndex([]Rule{*r}); err != nil {
		t.Fatal(err)
	}
	r.Key = r.BoundKey()
	return r
}

// TestVariablesOfKeys: what a part of the key has in a request that matches the rule.
func TestVariablesOfKeys(t *testing.T) {
	long := strings.Repeat("x", 4000)
	for _, c := range []struct{ part, template, request, want string }{
		{"path:{id}", "/users/{id}", "/users/7", "7"},
		{"path:{id}", "/users/{id}/orders/{order}", "/users/7/orders/8", "7"},
		{"path:{order}", "/users/{id}/orders/{order}", "/users/7/orders/8", "8"},
		{"path:{id}", "/{id:[0-9]+}/**", "/12/a/b", "12"},
		{"path:{id}", "/*/{id}", "/a/b", "b"},
		{"path:{name}", "/files/{name}.{format}", "/files/a.tar.gz", "a"},
		{"path:{format}", "/files/{name}.{format}", "/files/a.tar.gz", "tar.gz"},
		{"path:{id}", "/users/user-{id}", "/users/user-7", "7"},
		{"path:{rest}", "/files/{rest...}", "/files/a/b/", "a/b/"},
		{"path:{rest}", "/files/{rest...}", "/files/", ""},
		{"path:{rest}", "/files/{rest...}", "/files", ""},
		{"path:{id}", "/users/{id}", "/users/" + long, long},
		{"path:{id}", "/users/{id}", "/users/a b\x01%2F\xff..", "a b\x01%2F\xff.."}, // decoded once, and never again
		{"host:{sub}", "{sub}.example.com", "acme.example.com", "acme"},
		{"host:{sub}", "{sub}.eu.{domain}", "a.eu.com", "a"},
		{"host:{domain}", "{sub}.eu.{domain}", "a.eu.com", "com"},
		{"host:{sub}", "api-{sub}.example.com", "api-acme.example.com", "acme"},
		{"host:{sub}", "{sub...}.example.com", "a.b.example.com", "a.b"},
		{"host:{sub}", "{sub}.example.com {sub}.example.org", "a.example.org", "a"},
		{"host:{sub}", "{sub}.example.com {sub}.shop.example.org", "a.shop.example.org", "a"},
		{"host:{sub}", "{sub}.example.com {sub}.shop.example.org", "b.example.com", "b"},
		{"host:{sub}", "api-{sub}.example.com {sub}.example.com", "api-a.example.com", "a"}, // the first host that matches
		{"host:{sub}", "api-{sub}.example.com {sub}.example.com", "web-a.example.com", "web-a"},
	} {
		m, req := Match{}, &headgate.Request{Path: "/", Host: "h"}
		if strings.HasPrefix(c.part, "host:") {
			m.Hosts, req.Host = strings.Fields(c.template), c.request
		} else {
			m.Path, req.Path = c.template, c.request
		}
		r := bound(t, c.part, m)
		if value, ok := r.Key[0].Text(req); !ok || value != c.want {
			t.Errorf("%s of %s in %.40s is %.40q, %t; want %.40q", c.part, c.template, c.request, value, ok, c.want)
		}
		key, shared := r.AppendKey(nil, req)
		if _, elements, err := readKey(key); err != nil || shared || elements[0].value != boundedValue(c.want) || len(key) > 2*maxValueLength {
			t.Errorf("the key is %q, %t, %v", key, shared, err)
		}
		if race.On {
			continue
		}
		var index *Index
		index, _ = NewIndex([]Rule{*r})
		into := make([]int, 0, 1)
		if n := testing.AllocsPerRun(20, func() {
			into = index.Match(req, into[:0])
			key, _ = r.AppendKey(key[:0], req)
		}); n != 0 || len(into) != 1 {
			t.Errorf("%s in %.40s: %v allocations, %d rules match", c.part, c.request, n, len(into))
		}
	}
}

// TestUnboundVariables: a part that no guard has bound has no value, and its rule keeps its key.
func TestUnboundVariables(t *testing.T) {
	r := &Rule{Name: "r", Match: Match{Path: "/users/{id}"}, Key: parts(t, "path:{id}")}
	r.BoundKey()
	if value, ok := r.Key[0].Text(&headgate.Request{Path: "/users/7"}); ok {
		t.Errorf("the value is %q", value)
	}
	if key := r.BoundKey(); key[0] == r.Key[0] || key[0].String() != "path:{id}" {
		t.Errorf("the bound part is %v", key[0])
	}
}

// TestVariablesAreThoseOfExpressions compares what templates capture with the groups of expressions.
func TestVariablesAreThoseOfExpressions(t *testing.T) {
	captured := 0
	property.Check(t, func(t *property.T) {
		kind := property.SampledFrom([]textKind{textPath, textHost}).Draw(t, "kind")
		text := drawnPattern(t, kind)
		p, f := compilePattern(kind, text)
		if f != (fault{}) || len(p.names()) == 0 {
			return
		}
		twin := slowCaptures(kind, text)
		for range 8 {
			with := made(t, text)
			if kind == textHost {
				with = strings.ToLower(with)
			}
			if with == "" || !p.match(with) {
				continue
			}
			groups := twin.FindStringSubmatch(with)
			if groups == nil {
				t.Fatalf("%s matches %q, and %s does not", text, with, twin)
			}
			for _, name := range p.names() {
				captured++
				if got, ok := p.capturing(name).find(with); !ok || got != groups[twin.SubexpIndex(name)] {
					t.Fatalf("%s captures %s=%q of %q, %t; %s captures %q", text, name, got, with, ok, twin, groups[twin.SubexpIndex(name)])
				}
			}
		}
	})
	if captured < 20 {
		t.Errorf("only %d values", captured)
	}
}

// slowCaptures makes an expression of a template. Each variable takes the shortest text, as far as the whole text matches.
func slowCaptures(kind textKind, text string) *regexp.Regexp {
	one := "[^/]"
	if kind == textHost {
		one = "[^.]"
		if rest, below := strings.CutPrefix(text, "*."); below {
			text = "**." + rest
		}
	} else {
		text = regexp.MustCompile(`/\*$`).ReplaceAllString(strings.TrimSuffix(text, "{$}"), "/**")
	}
	begin, end := "", ""
	if rest, found := strings.CutSuffix(text, "/**"); found {
		text, end = rest, "(?:/.*)?"
	} else if rest, found := strings.CutSuffix(text, "/{rest...}"); found {
		text, end = rest, "(?:/(?P<rest>.*))?"
	} else if rest, found := strings.CutSuffix(text, "**"); found {
		text, end = rest, ".*"
	} else if rest, found := strings.CutPrefix(text, "**."); found {
		text, begin = rest, `.+\.`
	} else if rest, found := strings.CutPrefix(text, "{rest...}."); found {
		text, begin = rest, `(?P<rest>.+)\.`
	}
	body := regexp.MustCompile(`\{([^:}]+)(?::(?:[^{}]|\{[^}]*\})*)?\}|\*|[^*{]+`).ReplaceAllStringFunc(text, func(piece string) string {
		switch name, _, _ := strings.Cut(strings.Trim(piece, "{}"), ":"); {
		case piece == "*":
			return one + "*?"
		case piece[0] == '{':
			return "(?P<" + name + ">" + one + "+?)"
		case kind == textHost:
			return "(?i:" + regexp.QuoteMeta(piece) + ")"
		default:
			return regexp.QuoteMeta(piece)
		}
	})
	return regexp.MustCompile("^(?s:" + begin + body + end + ")$")
}

// TestVariableFaults: a name that the match does not have is a fault that says what to write.
func TestVariableFaults(t *testing.T) {
	for _, c := range []struct {
		key  string
		m    Match
		want string
	}{
		{"path:{id}", Match{Path: "/users/{uid}/x/{other}"}, `key[0] match.path "/users/{uid}/x/{other}" has no name "id": did you mean path:{uid}? Use path:{uid} or path:{other}`},
		{"path:{id}", Match{Path: "/users/{user}"}, `key[0] match.path "/users/{user}" has no name "id": use path:{user}`},
		{"ip path:{id}", Match{Path: "/users"}, `key[1] path:{id} needs a name in match.path, and "/users" has none: write {id} for the segment that counts, as in "/users/{id}"`},
		{"path:{id}", Match{Path: "/users/*"}, `key[0] path:{id} needs a name in match.path, and "/users/*" has none: write {id} for the segment that counts, as in "/users/{id}"`},
		{"path:{id}", Match{Path: "=/users/{id}"}, `key[0] path:{id} needs a name in match.path, and "=/users/{id}" has none: write {id} for the segment that counts, as in "/users/{id}"`},
		{"path:{id}", Match{Hosts: []string{"{id}.example.com"}}, `key[0] path:{id} needs a name in match.path, and the match has no path: add match: {path: "/users/{id}"}`},
		{"path:{id}", Match{Not: &Match{Path: "/users/{id}"}}, `key[0] path:{id} needs a name in match.path, and the match has no path: add match: {path: "/users/{id}"}`},
		{"path:{id}", Match{Path: "re:/users/(.+)"}, `key[0] path:{id} needs a name in match.path, and "re:/users/(.+)" is an expression, which has no names: write match.path as a template, like "/users/{id}" or "/users/{id:[0-9]+}"`},
		{"host:{sub}", Match{}, `key[0] host:{sub} needs a name in each host of match.hosts, and the match has no hosts: add match: {hosts: ["{sub}.example.com"]}`},
		{"host:{sub}", Match{Hosts: []string{"{sub}.a.com", "b.com"}}, `key[0] host:{sub} needs a name in each host of match.hosts, and match.hosts[1] "b.com" has none: write "{sub}.example.com", or give this host a rule of its own`},
		{"host:{sub}", Match{Hosts: []string{"*.a.com"}}, `key[0] host:{sub} needs a name in each host of match.hosts, and match.hosts[0] "*.a.com" has none: write "{sub}.a.com" for one label, or "{sub...}.a.com" for every name below a.com`},
		{"host:{sub}", Match{Hosts: []string{"{sub}.a.com", "{tenant}.b.com"}}, `key[0] match.hosts[1] "{tenant}.b.com" has no name "sub": use host:{tenant}`},
		{"path:{id}", Match{Path: "users"}, `match.path "users" does not begin with /: write "/users"`}, // no second fault
		{"path:{id} ip path:{id}", Match{Path: "/{id}"}, `key[2] has path:{id} twice: remove one of them`},
	} {
		r := Rule{Name: "r", Match: c.m, Key: parts(t, strings.Fields(c.key)...)}
		_, err := NewIndex([]Rule{r})
		bad, ok := errortype.As[*RuleError](err)
		if !ok || bad.Field+" "+bad.Problem+": "+bad.Fix != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.key, err, c.want)
		}
		r.BoundKey() // does not fail
	}
}

// TestOverridesOfVariables: overrides, clients and named keys of variables and of the query.
func TestOverridesOfVariables(t *testing.T) {
	for _, c := range []struct {
		part  string
		m     Match
		value string
		req   headgate.Request
	}{
		{"path:{id}", Match{Path: "/users/{id}/**"}, "vip", headgate.Request{Path: "/users/vip/a"}},
		{"path:{id}", Match{Path: "/users/u-{id}"}, "vip", headgate.Request{Path: "/users/u-vip"}},
		{"path:{rest}", Match{Path: "/f/{rest...}"}, "a/b", headgate.Request{Path: "/f/a/b"}},
		{"host:{sub}", Match{Hosts: []string{"{sub}.a.com", "{sub}.shop.b.com"}}, "VIP", headgate.Request{Host: "vip.shop.b.com"}},
		{"host:{sub}", Match{Hosts: []string{"{sub...}.a.com", "x-{sub}.b.com"}}, "a.b", headgate.Request{Host: "a.b.a.com"}},
		{"query:user", Match{}, "a b", headgate.Request{Query: sent{"user": "a b"}}},
	} {
		r := bound(t, c.part, c.m)
		o, err := NewOverrides(r.Key[0], []string{"other", c.value})
		if err != nil {
			t.Fatal(err)
		}
		if i, found := o.Find(&c.req); !found || i != 1 {
			t.Errorf("%s: override %d, %t", c.part, i, found)
		}
		want, _ := r.AppendKey(nil, &c.req)
		named, err := r.NameKey([]string{c.value})
		if err != nil || named.Key != string(want) {
			t.Fatalf("%s %s: %q, %v, want %q", c.part, c.value, named.Key, err, want)
		}
		if i, found := o.Find(named.Request); !found || i != 1 {
			t.Errorf("%s: the named key has override %d, %t", c.part, i, found)
		}
		client, _ := r.Key[0].AppendClient(nil, &c.req)
		if name, err := CustomerName(r.Key[0], c.value); err != nil || name != string(client) {
			t.Errorf("%s: the customer is %q, %v, want %q", c.part, name, err, client)
		}
	}
}
