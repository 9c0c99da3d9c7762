package check

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

func networks(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestLeftOut(t *testing.T) {
	for _, row := range []struct {
		match, wide rule.Match
		want        bool
	}{
		{rule.Match{Path: "/a/b"}, rule.Match{Path: "/a/*"}, true},
		{rule.Match{Path: "/a"}, rule.Match{Path: "/a/*"}, true},
		{rule.Match{Path: "/a/*"}, rule.Match{Path: "/a/**"}, true},
		{rule.Match{Path: "/a/{id}/c"}, rule.Match{Path: "/a/*"}, true},
		{rule.Match{}, rule.Match{Path: "/**"}, true},
		{rule.Match{Path: "re:/a/.*"}, rule.Match{Path: "/*"}, true},
		{rule.Match{Path: "/a/*"}, rule.Match{Path: "/a/b"}, false},
		{rule.Match{Path: "/ab"}, rule.Match{Path: "/a/*"}, false},
		{rule.Match{Path: "/a/*"}, rule.Match{Path: "/a"}, false},
		{rule.Match{Path: "/a/b"}, rule.Match{Path: "=/a/*"}, false},
		{rule.Match{}, rule.Match{Methods: []string{"GET"}}, false},
		{rule.Match{Methods: []string{"GET"}}, rule.Match{Methods: []string{"POST", "GET"}}, true},
		{rule.Match{Methods: []string{"HEAD"}}, rule.Match{Methods: []string{"GET"}}, true},
		{rule.Match{Methods: []string{"GET"}}, rule.Match{Methods: []string{"HEAD"}}, false},
		{rule.Match{Methods: []string{"GET", "PUT"}}, rule.Match{Methods: []string{"GET"}}, false},
		{rule.Match{Methods: []string{"GET"}}, rule.Match{Methods: []string{"GET"}, Path: "/a"}, false},
		{rule.Match{Hosts: []string{"a.Example.com"}}, rule.Match{Hosts: []string{"*.example.com"}}, true},
		{rule.Match{Hosts: []string{"example.com"}}, rule.Match{Hosts: []string{"*.example.com"}}, false},
		{rule.Match{Addresses: networks("10.1.0.0/16", "10.2.0.1/32")}, rule.Match{Addresses: networks("10.0.0.0/8")}, true},
		{rule.Match{Addresses: networks("10.0.0.0/8")}, rule.Match{Addresses: networks("10.1.0.0/16")}, false},
		{rule.Match{Headers: map[string]string{"x-a": "b"}}, rule.Match{Headers: map[string]string{"X-A": "*"}}, true},
		{rule.Match{Headers: map[string]string{"X-A": "*"}}, rule.Match{Headers: map[string]string{"X-A": "b"}}, false},
		{rule.Match{Query: map[string]string{"a": "b", "c": "d"}}, rule.Match{Query: map[string]string{"a": "=b"}}, true},
		{rule.Match{Path: "/a/b"}, rule.Match{Path: "/a/*", Not: &rule.Match{Methods: []string{"GET"}}}, false},
	} {
		if got := newComparison().within(&row.match, &row.wide); got != row.want {
			t.Errorf("%+v within %+v: %t, want %t", row.match, row.wide, got, row.want)
		}
	}
}

// TestLeftOutNeverDecides sends random requests to random rules. A rule that LeftOut finds must match none of them.
func TestLeftOutNeverDecides(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	ip, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	found, matched := 0, 0
	for range 6_000 {
		m, not := drawMatch(draw), drawMatch(draw)
		if not.IsZero() {
			continue
		}
		r := guard.Rule{Rule: rule.Rule{Name: "a", Match: m}}
		if draw.IntN(2) == 0 {
			r.Exempt = []rule.Match{not}
		} else {
			r.Match.Not = &not
		}
		r.Key = []rule.Part{ip}
		index, err := rule.NewIndex([]rule.Rule{r.Rule})
		if err != nil {
			t.Fatal(err)
		}
		never := len(LeftOut([]guard.Rule{r}, []bool{true}, func(string) bool { return false })) > 0
		if never {
			found++
		}
		for range 30 {
			if req := drawRequest(draw); len(index.Match(&req, nil)) > 0 {
				if matched++; never {
					t.Fatalf("%+v without %+v matches %s %s of %s from %s", m, not, req.Method, req.Path, req.Host, req.ClientIP)
				}
			}
		}
	}
	if found < 150 || matched < 500 {
		t.Errorf("%d rules were found and %d requests matched, want at least 150 and 500", found, matched)
	}
}

func drawMatch(draw *rand.Rand) (m rule.Match) {
	paths := []string{"", "", "/*", "/a", "/a/*", "/a/**", "/a/b", "/a/b/*", "/a/{x}", "/{x}/b", "/a**", "/a/b**", "=/a/*", "=/a", "re:/a/.*", "/ab"}
	m.Path = paths[draw.IntN(len(paths))]
	if draw.IntN(3) == 0 {
		methods := []string{"GET", "HEAD", "POST", "=GET", "P*"}
		for range 1 + draw.IntN(2) {
			m.Methods = append(m.Methods, methods[draw.IntN(len(methods))])
		}
	}
	if draw.IntN(4) == 0 {
		hosts := []string{"a.test", "b.a.test", "*.a.test", "**.test", "*.test", "{x}.a.test", "B.a.test", "re:.*test", "=a.test"}
		m.Hosts = []string{hosts[draw.IntN(len(hosts))]}
	}
	if draw.IntN(4) == 0 {
		nets := []string{"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0"}
		m.Addresses = networks(nets[draw.IntN(len(nets))])
	}
	return m
}

func drawRequest(draw *rand.Rand) headgate.Request {
	one := func(texts ...string) string { return texts[draw.IntN(len(texts))] }
	return headgate.Request{
		Path: one("/", "/a", "/ab", "/a/", "/a/b", "/a/b/c", "/a/*", "/a/x", "/c/b"), Method: one("GET", "HEAD", "POST", "PUT"),
		Host: one("a.test", "b.a.test", "c.b.a.test", "test"), ClientIP: netip.MustParseAddr(one("10.1.2.3", "10.1.0.1", "10.9.9.9", "192.0.2.1")),
	}
}
