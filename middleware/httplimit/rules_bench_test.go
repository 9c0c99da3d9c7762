package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// BenchmarkRules decides one request by a rule with a key from a header, and by rules that read a query, networks and a template.
func BenchmarkRules(b *testing.B) {
	networks := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")}
	for _, c := range []struct {
		name, key string
		match     rule.Match
	}{
		{"header", "header:X-Client-Id", rule.Match{Path: "/users/*"}},
		{"query", "header:X-Client-Id", rule.Match{Path: "/users/*", Query: map[string]string{"format": "csv"}}},
		{"querykey", "query:user", rule.Match{Path: "/users/*"}},
		{"network", "header:X-Client-Id", rule.Match{Path: "/users/*", Addresses: networks}},
		{"template", "header:X-Client-Id", rule.Match{Path: "/users/{id}"}},
		{"variable", "path:{id}", rule.Match{Path: "/users/{id}"}},
		{"together", "query:user", rule.Match{Path: "/users/{id}", Addresses: networks}},
	} {
		b.Run(c.name, func(b *testing.B) {
			part, err := rule.ParsePart(c.key)
			if err != nil {
				b.Fatal(err)
			}
			store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}
			g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
				Rule:     rule.Rule{Name: "r", Match: c.match, Key: []rule.Part{part}},
				Policies: []headgate.Policy{{Limit: headgate.Limit{Count: headgate.MaxUnits / 2, Per: time.Hour}}},
			}}})
			if err != nil {
				b.Fatal(err)
			}
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/users/7?page=2&format=csv&user=bob", http.NoBody)
			r.Header.Set("X-Client-Id", "bob")
			x := httplimit.Exchange{OneValue: true}
			b.ReportAllocs()
			for b.Loop() {
				if err := x.Admit(g, r); err != nil || len(x.Answer.Results) != 1 {
					b.Fatal(err)
				}
				x.Done(guard.Refused)
				x.Reset()
			}
		})
	}
}
