package config

import (
	"slices"
	"strings"
	"testing"
)

// TestDifference: names of what differs, without values, comments, styles and the order of fields.
func TestDifference(t *testing.T) {
	const base = `version: 1
rules:
  - {name: a, key: [ip], limits: ["5/1m"]}
  - {name: b, key: [header:X-B], limits: ["5/1m"]}
proxy: {upstream: "http://127.0.0.1:1", upstream_timeout: 5s}
log: {level: info}
identity: {trusted_proxies: [10.0.0.0/8, 192.168.0.0/16]}
`
	for name, row := range map[string]struct{ old, new, want string }{
		"nothing":           {"", "", ""},
		"a comment":         {"log: ", "# why\nlog: ", ""},
		"a style":           {`"http://127.0.0.1:1"`, `'http://127.0.0.1:1'`, ""},
		"an order":          {`upstream: "http://127.0.0.1:1", upstream_timeout: 5s`, `upstream_timeout: 5s, upstream: "http://127.0.0.1:1"`, ""},
		"a limit":           {"{name: a, key: [ip], limits: [\"5/1m\"]}", "{name: a, key: [ip], limits: [\"6/1m\"]}", "rules/a"},
		"a rule's name":     {"name: b", "name: c", "rules/b rules/c"},
		"a setting":         {"5s", "6s", "proxy.upstream_timeout"},
		"a section":         {"log: {level: info}\n", "", "log.level"},
		"another section":   {"log: {", "max_memory: 2MiB\nlog: {", "max_memory"},
		"an element":        {"10.0.0.0/8, ", "", "identity.trusted_proxies"},
		"several":           {"{level: info}", "{level: debug}\nmax_memory: 2MiB", "log.level max_memory"},
		"a password's name": {"log: ", "store: redis://:secret@127.0.0.1\nlog: ", "store"},
	} {
		former, next := parsed(t, base), parsed(t, strings.Replace(base, row.old, row.new, 1))
		if row.old == "" {
			next = parsed(t, base)
		}
		want := strings.Fields(row.want)
		if got := Difference(former, next); !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if got := Difference(next, former); !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s, back: got %q, want %q", name, got, want)
		}
	}
	if got := Difference(new(Config), parsed(t, base)); len(got) != 7 {
		t.Errorf("without a former file: got %q, want all 7 settings and rules", got)
	}
}
