package config

import (
	"strings"
	"testing"
)

// TestSummaryTexts: the summary shows what a rule does with a missing part of the key, how bans grow, and the bursts of overrides.
func TestSummaryTexts(t *testing.T) {
	c, err := Parse("f", []byte(`version: 1
rules:
  - {name: own, group: g, key: [header:X-A], missing: skip, limits: [5/s]}
  - {name: rest, group: g, key: [ip], limits: [5/m]}
  - {name: strict, key: [cookie:a], missing: refuse, limits: [6/m]}
  - {name: login, match: {path: /login}, key: [ip], count: {status: [401]}, ban: {after: 5/1m, for: 60d, growth: 2}}
  - {name: bursts, match: {path: /b}, key: [header:X-B], limits: [7/m], burst: 9, overrides: {a: {limits: [3/1m]}, b: {limits: [4/1m], burst: 8}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := c.WriteSummary(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"header:X-A, missing: skip", "cookie:a, missing: refuse", "own: decides requests that it matches; without a part of its key, the rules below decide\n",
		"ban 60d after 5/1m of 401, times 2 up to 359d, forgotten after 7d", `"a": 3/1m, without the rule's burst`, `"b": 4/1m burst 8`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
