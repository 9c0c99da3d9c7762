package rule_test

import (
	"fmt"
	"net/netip"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// headers are what a front gives a request to look values up.
type headers map[string]string

func (h headers) Lookup(name string) (string, bool) {
	value, ok := h[name]
	return value, ok
}

// key reads the parts of a key that are known to be good.
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

// Which rules speak for a request, and under which key does each count it?
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

func ExampleParseLimit() {
	limit, err := rule.ParseLimit("1000/1h30m")
	fmt.Println(limit.Count, limit.Per, err)

	_, err = rule.ParseLimit("500/2x")
	fmt.Println(err)
	// Output:
	// 1000 1h30m0s <nil>
	// rule: period "2x" has the unknown unit "x": period must be like 2s, 10m, 1h or 1d
}
