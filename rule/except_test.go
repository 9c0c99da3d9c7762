package rule

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/property"
	"github.com/headgate/headgate/internal/testkit/race"
)

// isMatch is the twin of a match: all of its fields, one after the other.
func isMatch(m *Match, req *headgate.Request) bool {
	if m.Domain != "" && m.Domain != req.Domain || !scanPath(m.Path, req.Path) || !scanMethods(m.Methods, req.Method) || !scanHosts(m.Hosts, req.Host) {
		return false
	}
	if !scanValues(m.Headers, req.Header) || !scanValues(m.Query, req.Query) || !scanValues(m.Descriptors, req.Descriptors) {
		return false
	}
	if len(m.Addresses) > 0 && !slices.ContainsFunc(m.Addresses, func(n netip.Prefix) bool { return n.Contains(req.ClientIP.Unmap()) }) {
		return false
	}
	return m.Not == nil || !isMatch(m.Not, req)
}

// isRule is the twin of a rule.
func isRule(r *Rule, req *headgate.Request) bool {
	if !isMatch(&r.Match, req) || req.Domain != "" && !r.Match.ForQueries() {
		return false
	}
	return !slices.ContainsFunc(r.Exempt, func(m Match) bool { return isMatch(&m, req) })
}

// twinNetworks contain each other, or have common begins.
var twinNetworks = func() (all []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.0.0/17", "10.1.2.0/24", "10.1.2.3/32", "192.0.2.0/25", "::/0", "2001:db8::/32",
		"2001:db8::/33", "2001:db8::/64", "2001:db8::1/128", "2001:db8:8000::/35",
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}()

func drawMatch(t *property.T) Match {
	return Match{
		Path:      property.SampledFrom(twinPaths).Draw(t, "path"),
		Methods:   property.SliceOfN(property.SampledFrom(twinMethods), 0, 1).Draw(t, "methods"),
		Hosts:     property.SliceOfN(property.SampledFrom(twinHosts), 0, 1).Draw(t, "hosts"),
		Headers:   property.MapOfN(property.SampledFrom(twinNames), property.SampledFrom(twinValues), 0, 1).Draw(t, "headers"),
		Query:     property.MapOfN(property.SampledFrom(twinNames), property.SampledFrom(twinValues), 0, 2).Draw(t, "query"),
		Addresses: property.SliceOfN(property.SampledFrom(twinNetworks), 0, 6).Draw(t, "addresses"),
		Domain:    property.SampledFrom([]string{"", "", "", "1"}).Draw(t, "domain"),
	}
}

// drawException draws a match that leaves out something.
func drawException(t *property.T) Match {
	m := drawMatch(t)
	if m.IsZero() {
		m.Path = "/a"
	}
	return m
}

func drawExceptRules(t *property.T) []Rule {
	rules := make([]Rule, property.SampledFrom([]int{1, 5, 40}).Draw(t, "rules"))
	for i := range rules {
		rules[i].Match = drawMatch(t)
		if property.Bool().Draw(t, "not") {
			not := drawException(t)
			rules[i].Match.Not = &not
		}
		if property.Bool().Draw(t, "exempt") {
			rules[i].Exempt = property.SliceOfN(property.Custom(drawException), 1, 3).Draw(t, "exempt matches")
			not := drawException(t)
			rules[i].Exempt[0].Not = &not
		}
	}
	return named(rules)
}

func drawExceptRequest(t *property.T) *headgate.Request {
	req := drawRequest(t)
	if query := property.MapOfN(property.SampledFrom(twinNames), property.SampledFrom([]string{"", "1", "2"}), 0, 3).Draw(t, "query"); len(query) > 0 {
		req.Query = sent(query)
	}
	req.ClientIP, _ = netip.ParseAddr(property.SampledFrom([]string{
		"none", "10.1.2.3", "10.1.2.4", "10.1.130.1", "::ffff:10.1.2.3", "192.0.2.200", "2001:db8::1", "2001:db8::2", "2001:db8:a000::1", "fe80::1",
	}).Draw(t, "client"))
	return req
}

// TestExceptionsAreSets: the index finds the rules of the twin, with addresses, queries, not and exempt. A match with not is the
// difference of two sets, exempt leaves out a union, and not of a match together with the match are all requests.
func TestExceptionsAreSets(t *testing.T) {
	property.Check(t, func(t *property.T) {
		rules := drawExceptRules(t)
		x, err := NewIndex(rules)
		if err != nil {
			t.Fatal(err)
		}
		a, b := drawException(t), drawException(t)
		set := func(all ...Match) *MatchSet {
			s, err := NewMatchSet(all)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		difference := a
		difference.Not = &b
		both, first, second, without, others := set(a, b), set(a), set(b), set(difference), set(Match{Not: &a})
		for range 20 {
			req := drawExceptRequest(t)
			var want []int
			for i := range rules {
				if isRule(&rules[i], req) {
					want = append(want, i)
				}
			}
			if got := x.Match(req, nil); !slices.Equal(got, want) {
				t.Fatalf("%+v: got matches %v, want %v of the twin, of %+v", req, got, want, rules)
			}
			inA, inB := isMatch(&a, req), isMatch(&b, req)
			if first.Has(req) != inA || second.Has(req) != inB || both.Has(req) != (inA || inB) || without.Has(req) != (inA && !inB) || others.Has(req) == inA {
				t.Fatalf("%+v: the sets of %+v and %+v do not follow the algebra", req, a, b)
			}
			if at := both.First(req); inA && at != 0 || !inA && inB && at != 1 || !inA && !inB && at != -1 {
				t.Fatalf("the first match is %d", at)
			}
		}
	})
	if (*MatchSet)(nil).Has(&headgate.Request{}) || (*MatchSet)(nil).First(&headgate.Request{}) != -1 {
		t.Error("no set has a request")
	}
}

// randomNetworks gives networks of lengths as in routing tables.
func randomNetworks(n int, seed uint64) []netip.Prefix {
	random := rand.New(rand.NewPCG(seed, 7))
	all := make([]netip.Prefix, n)
	for i := range all {
		var bytes [16]byte
		for j := range bytes {
			bytes[j] = byte(random.Uint32())
		}
		bytes[0] |= 0x20
		if i%2 == 0 {
			all[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte(bytes[:4])), 24-random.IntN(2)*8).Masked()
		} else {
			all[i] = netip.PrefixFrom(netip.AddrFrom16(bytes), 48+random.IntN(2)*16).Masked()
		}
	}
	return all
}

// TestNetworkTable: the table finds the narrowest network, and then all wider ones, as a scan does.
func TestNetworkTable(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range race.Fewer(2000, 200) {
		networks := make([]netip.Prefix, 1+random.IntN(40))
		for i := range networks {
			// Few different bits make networks within networks likely.
			four := [4]byte{byte(random.IntN(2) * 128), byte(random.IntN(3)), byte(random.IntN(2)), byte(random.IntN(4) * 64)}
			networks[i] = netip.PrefixFrom(netip.AddrFrom4(four), random.IntN(33)).Masked()
			if random.IntN(2) == 0 {
				sixteen := [16]byte{0: four[0], 1: four[1], 7: four[2], 8: four[3], 15: byte(random.IntN(3))}
				networks[i] = netip.PrefixFrom(netip.AddrFrom16(sixteen), random.IntN(129)).Masked()
			}
		}
		slices.SortFunc(networks, comparePrefixes)
		networks = slices.Compact(networks)
		table, set := newNetworkTable(networks), newNetworkSet(networks)
		for range 50 {
			ip := networks[random.IntN(len(networks))].Addr()
			if random.IntN(3) == 0 {
				ip = ip.Next()
			}
			var got, want []int32
			for i := table.narrowest(ip); i >= 0; i = table.wider[i] {
				got = append(got, i)
			}
			for i, network := range networks {
				if network.Contains(ip) {
					want = append(want, int32(i))
				}
			}
			slices.SortFunc(want, func(a, b int32) int { return networks[b].Bits() - networks[a].Bits() })
			if !slices.Equal(got, want) || set.contains(ip) != (len(want) > 0) {
				t.Fatalf("%s: got %v, want %v of %v", ip, got, want, networks)
			}
		}
	}
	if table := newNetworkTable(twinNetworks); table.narrowest(netip.Addr{}) != -1 {
		t.Error("a network has the address that is none")
	}
}

// TestNetworkTableMemory: a network takes a bounded number of bytes, also the longest ones without common bits.
func TestNetworkTableMemory(t *testing.T) {
	networks := randomNetworks(10_000, 5)
	for i := range networks {
		if ip := networks[i].Addr(); ip.Is6() {
			networks[i] = netip.PrefixFrom(ip, 128)
		}
	}
	s := newNetworkSet(networks)
	if bytes := (32*cap(s.table.tails) + 24*cap(s.table.nodes) + 4*cap(s.table.leaves) + 4*cap(s.table.wider)) / len(s.all); bytes > 200 {
		t.Errorf("%d bytes for each network, want at most 200", bytes)
	}
}

// TestExceptionsAllocateNothing: neither a network, a query nor an exception costs memory for a request.
func TestExceptionsAllocateNothing(t *testing.T) {
	networks := randomNetworks(10_000, 1)
	rules := make([]Rule, 100)
	for i := range rules {
		rules[i] = Rule{
			Match: Match{
				Path: "/v1/*", Query: map[string]string{"format": "csv"}, Addresses: networks[i : i+50],
				Not: &Match{Path: "/v1/other", Addresses: networks},
			},
			Exempt: []Match{{Methods: []string{"OPTIONS"}}, {Query: map[string]string{"probe": "1"}}, {Addresses: networks[5000:]}},
		}
	}
	x, err := NewIndex(named(rules))
	if err != nil {
		t.Fatal(err)
	}
	query := Query("page=2&format=csv")
	req := headgate.Request{Method: "GET", Path: "/v1/a", Query: &query, ClientIP: networks[70].Addr()}
	found := make([]int, 0, 200)
	if n := testing.AllocsPerRun(100, func() { found = x.Match(&req, found[:0]) }); n > 0 || len(found) != 50 {
		t.Errorf("%v allocations, %d rules", n, len(found))
	}
	set, err := NewMatchSet([]Match{{Path: "/healthz"}, {Addresses: networks}, {Path: "/v1/*"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = set.Has(&req) }); n > 0 || !set.Has(&req) {
		t.Errorf("%v allocations of a set", n)
	}
}

// TestFaultsOfExceptions: each fault has its place.
func TestFaultsOfExceptions(t *testing.T) {
	network := func(text string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(text)} }
	for want, r := range map[string]Rule{
		"match.not has no field, so that no request would match":                           {Match: Match{Not: &Match{}}},
		"match.not.not is in another not":                                                  {Match: Match{Not: &Match{Not: &Match{Path: "/a"}}}},
		"match.not.path \"a\" does not begin with /":                                       {Match: Match{Not: &Match{Path: "a"}}},
		"exempt[0] has no field, so that the rule would match no request":                  {Exempt: []Match{{}}},
		"exempt[1].not.methods[0]":                                                         {Exempt: []Match{{Path: "/a"}, {Not: &Match{Methods: []string{"get"}}}}},
		"exempt has 257 entries: use at most 256":                                          {Exempt: make([]Match, 257)},
		"match.addresses[0] is not a network":                                              {Match: Match{Addresses: make([]netip.Prefix, 1)}},
		"match.addresses[0] ::ffff:10.0.0.0/104 is IPv4 in IPv6":                           {Match: Match{Addresses: network("::ffff:10.0.0.0/104")}},
		"match.addresses[0] 10.1.0.0/8 has bits beyond its /8: write 10.0.0.0/8, or 10.1.": {Match: Match{Addresses: network("10.1.0.0/8")}},
		"match.addresses has 11001 networks: use at most 11000":                            {Match: Match{Addresses: make([]netip.Prefix, 11_001)}},
		"match.query.a has no value":                                                       {Match: Match{Query: map[string]string{"a": ""}}},
		"match.query.a is percent-encoded":                                                 {Match: Match{Query: map[string]string{"a": "%20"}}},
	} {
		_, err := NewIndex(named([]Rule{r}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	many := make([]Rule, 20)
	for i := range many {
		many[i].Match.Addresses = randomNetworks(10_001, uint64(i))
	}
	if _, err := NewIndex(named(many)); err == nil || !strings.Contains(err.Error(), "makes more than 200000 networks of all rules") {
		t.Errorf("got %v", err)
	}
	for i := range many {
		many[i].Match.Addresses = many[0].Match.Addresses
	}
	if _, err := NewIndex(named(many)); err != nil {
		t.Error("one list of many rules counts more than once:", err)
	}
}

// TestNetworksAreNotLookedAt: rules that differ by their network are not tested one by one.
func TestNetworksAreNotLookedAt(t *testing.T) {
	networks := randomNetworks(10_000, 2)
	rules := make([]Rule, len(networks))
	for i := range rules {
		rules[i].Match = Match{Path: "/v1/*", Addresses: networks[i : i+1]}
	}
	x, err := NewIndex(named(rules))
	if err != nil {
		t.Fatal(err)
	}
	for i, network := range networks {
		one := search{index: x, req: &headgate.Request{Path: "/v1/a", ClientIP: network.Addr()}}
		one.run()
		if one.looked > 2*fewEntries || !slices.Contains(one.found, i) {
			t.Fatalf("%s: %d rules are tested, %v match", network, one.looked, one.found)
		}
	}
}

// BenchmarkNetworks compares ten networks with 10,000: as rules, and in one rule.
func BenchmarkNetworks(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		networks := randomNetworks(n, 1)
		clients := make([]netip.Addr, 1<<10)
		for i := range clients {
			clients[i] = networks[i*7919%n].Addr().Next()
		}
		rules := make([]Rule, n)
		for i := range rules {
			rules[i].Match = Match{Path: "/v1/*", Addresses: networks[i : i+1]}
		}
		for name, rules := range map[string][]Rule{"rules": rules, "one rule": {{Match: Match{Path: "/v1/*", Addresses: networks}}}} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				x, err := NewIndex(named(rules))
				if err != nil {
					b.Fatal(err)
				}
				req := headgate.Request{Method: "GET", Path: "/v1/item"}
				var found []int
				random := uint32(1)
				b.ReportAllocs()
				for b.Loop() {
					random = random*1664525 + 1013904223 // The processor cannot predict the order.
					req.ClientIP = clients[random>>22]
					if found = x.Match(&req, found[:0]); len(found) == 0 {
						b.Fatal("no rule matches")
					}
				}
			})
		}
	}
}
