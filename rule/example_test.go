package rule_test

import (
	"fmt"
	"net/netip"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// headers are the header values of a request, which a front normally provides.
type headers map[string]string

func (h headers) Lookup(name string) (string, bool) {
	value, ok := h[name]
	return value, ok
}

// key parses the parts of a valid key.
func key(texts ...string) []rule.Part {
	var parts []rule.Part
	for _, text := range texts {
		part, err := rule.ParsePart(text)
		if err != nil {
			panic(err)
		}
		parts = append(parts, part)
	}
	return parts
}

// This example finds the rules that match a request, and the key of each rule.
func Example() {
	rules := []rule.Rule{
		{Name: "product", Match: rule.Match{Path: "/v1/product", Methods: []string{"GET"}}, Key: key("header:X-Client-Id")},
		{Name: "search", Match: rule.Match{Path: "/search/*"}, Key: key("ip", "path")},
		{Name: "crawl", Match: rule.Match{Path: "/*"}, Key: key("ip")},
	}
	index, err := rule.NewIndex(rules)
	if err != nil {
		fmt.Println(err)
		return
	}

	for _, req := range []headgate.Request{
		{Method: "GET", Path: "/v1/product", IP: netip.MustParseAddr("192.0.2.7"), Header: headers{"X-Client-Id": "a"}},
		{Method: "GET", Path: "/v1/product", IP: netip.MustParseAddr("192.0.2.7")},
		{Method: "GET", Path: "/search/shoes", IP: netip.MustParseAddr("2001:db8::7")},
	} {
		for _, i := range index.Match(&req, nil) {
			fmt.Println(rules[i].KeyText(&req))
		}
	}
	// Output:
	// product header:X-Client-Id="a"
	// crawl ip=192.0.2.7
	// product header:X-Client-Id=(missing)
	// crawl ip=192.0.2.7
	// search ip=2001:db8::/64 path="/search/shoes"
	// crawl ip=2001:db8::/64
}

// This example finds the client of a request that came through proxies. Each proxy
// appends its peer to X-Forwarded-For, so entries of trusted proxies are true. Identity
// ignores the entries that the client wrote.
func ExampleIdentity() {
	identity := &rule.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	perSender := rule.Rule{Name: "search", Key: key("xff_ip")}

	for _, c := range []struct{ peer, forwarded string }{
		{"10.0.0.1", "192.0.2.7"},
		{"10.0.0.1", "198.51.100.1, 192.0.2.7, 10.0.0.2"}, // the client forged the first entry
		{"203.0.113.9", "192.0.2.7"},                      // no trusted proxy
	} {
		req := &headgate.Request{IP: netip.MustParseAddr(c.peer), Header: headers{"X-Forwarded-For": c.forwarded}}
		identity.Resolve(req, perSender.Needs())
		fmt.Println(perSender.KeyText(req))
	}
	// Output:
	// search xff_ip=192.0.2.7
	// search xff_ip=192.0.2.7
	// search xff_ip=203.0.113.9
}

// This example finds the clients that have their own limits.
func ExampleOverrides() {
	overrides, err := rule.NewOverrides(key("header:X-Client-Id")[0], []string{"customer-42", "customer-7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(overrides.Find(&headgate.Request{Header: headers{"X-Client-Id": "customer-7"}}))
	fmt.Println(overrides.Find(&headgate.Request{Header: headers{"X-Client-Id": "customer-1"}}))

	_, err = rule.NewOverrides(key("ip")[0], []string{"2001:db8::/64", "2001:db8::7"})
	fmt.Println(err)
	// Output:
	// 1 true
	// 0 false
	// rule: overrides[1] "2001:db8::7" duplicates "2001:db8::/64": remove one of them
}

func ExampleParseLimit() {
	limit, err := rule.ParseLimit("1000/1h30m")
	fmt.Println(limit.Count, limit.Per, err)

	_, err = rule.ParseLimit("500/2x")
	fmt.Println(err)
	// Output:
	// 1000 1h30m0s <nil>
	// rule: period "2x" has the unknown unit "x": period must be like 2s, 10m, 1h or 1d
}
