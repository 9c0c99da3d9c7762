package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestUnreached checks, for two rules with the same key, which one is reported as never
// deciding anything. The rules are named a and b.
func TestUnreached(t *testing.T) {
	for name, row := range map[string]struct{ a, b, want string }{
		"the same":                          {"limits: [10/s]", "limits: [10/s]", "b"},
		"the second allows more":            {"limits: [10/s]", "limits: [11/s]", "b"},
		"the first allows more":             {"limits: [11/s]", "limits: [10/s]", "a"},
		"one is wider, the other lower":     {"match: {path: /*}, limits: [11/s]", "match: {path: /a}, limits: [10/s]", ""},
		"the wider one is as low":           {"match: {path: /a}, limits: [10/s]", "limits: [10/s]", "a"},
		"below a prefix":                    {"match: {path: /a/*}, limits: [10/s]", "match: {path: /a/b/c}, limits: [10/s]", "b"},
		"a prefix below a prefix":           {"match: {path: /a/*}, limits: [10/s]", "match: {path: /a/b/*}, limits: [10/s]", "b"},
		"the path of a prefix itself":       {"match: {path: /a/*}, limits: [10/s]", "match: {path: /a}, limits: [10/s]", "b"},
		"the path of a prefix as folder":    {"match: {path: /a/*}, limits: [10/s]", "match: {path: /a/}, limits: [10/s]", "b"},
		"a name that begins alike":          {"match: {path: /a/*}, limits: [10/s]", "match: {path: /ab}, limits: [10/s]", ""},
		"an exact path and its prefix":      {"match: {path: /a}, limits: [10/s]", "match: {path: /a/*}, limits: [10/s]", "a"},
		"exact paths":                       {"match: {path: /a}, limits: [10/s]", "match: {path: /a}, limits: [20/s]", "b"},
		"the root alone":                    {"match: {path: /}, limits: [10/s]", "match: {path: /*}, limits: [10/s]", "a"},
		"all of several limits are held":    {"limits: [10/s, 50/m]", "limits: [12/s, 60/m]", "b"},
		"one limit is lower":                {"limits: [10/s, 50/m]", "limits: [12/s, 49/m]", ""},
		"one limit has nothing like it":     {"limits: [10/s]", "limits: [12/s, 100/m]", ""},
		"a longer limit holds both":         {"limits: [10/m]", "limits: [10/s, 11/m]", "b"},
		"some methods of all":               {"limits: [10/s]", "match: {methods: [GET]}, limits: [10/s]", "b"},
		"the same methods":                  {"match: {methods: [PUT, GET]}, limits: [9/s]", "match: {methods: [GET, PUT, GET]}, limits: [10/s]", "b"},
		"other methods":                     {"match: {methods: [GET, PUT]}, limits: [9/s]", "match: {methods: [POST]}, limits: [10/s]", ""},
		"the same hosts":                    {"match: {hosts: [A.b]}, limits: [9/s]", "match: {path: /a, hosts: [a.B]}, limits: [10/s]", "b"},
		"other hosts":                       {"match: {hosts: [a.b]}, limits: [9/s]", "match: {hosts: [b.b]}, limits: [10/s]", ""},
		"the same headers":                  {"match: {headers: {x: 1}}, limits: [9/s]", "match: {headers: {X: 1}, methods: [GET]}, limits: [10/s]", "b"},
		"other values":                      {"match: {headers: {x: 1}}, limits: [9/s]", "match: {headers: {x: 2}}, limits: [10/s]", ""},
		"descriptors":                       {"match: {descriptors: {a: b}}, limits: [9/s]", "match: {headers: {a: b}, descriptors: {a: b}}, limits: [10/s]", "b"},
		"descriptors are no headers":        {"match: {descriptors: {a: b}}, limits: [9/s]", "match: {headers: {a: b}}, limits: [10/s]", ""},
		"a domain is seen by its own rules": {"limits: [9/s]", "match: {domain: a}, limits: [10/s]", ""},
		"one domain with descriptors":       {"match: {domain: a}, limits: [9/s]", "match: {domain: a, descriptors: {b: c}}, limits: [10/s]", "b"},
		"another domain":                    {"match: {domain: a}, limits: [9/s]", "match: {domain: b}, limits: [10/s]", ""},
		"a greater burst":                   {"limits: [10/s], burst: 5", "limits: [10/s], burst: 6", "b"},
		"a smaller burst at a higher rate":  {"limits: [10/s], burst: 5", "limits: [11/s], burst: 4", ""},
		"one costs more":                    {"limits: [10/s]", "limits: [10/s], cost: 2", ""},
		"both cost the same":                {"limits: [10/s], cost: 1", "limits: [10/s]", "b"},
		"costs from one header":             {"limits: [10/s], cost: 'header:X'", "limits: [20/s], cost: 'header:x'", "b"},
		"a lower max_cost refuses more":     {"limits: [10/s], cost: 'header:X'", "limits: [20/s], cost: 'header:X', max_cost: 5", ""},
		"the first warns":                   {"limits: [10/s], soft: 50%", "limits: [10/s]", "b"},
		"the first bans":                    {"limits: [10/s], ban: {for: 1s}", "limits: [10/s]", "b"},
		"the second bans":                   {"limits: [10/s]", "limits: [10/s], ban: {for: 1s}", "a"},
		"both ban":                          {"limits: [10/s], ban: {for: 1s}", "limits: [10/s], ban: {for: 1s}", ""},
		"the first only watches":            {"limits: [10/s], mode: shadow", "limits: [10/s]", ""},
		"the first is off":                  {"limits: [10/s], mode: off", "limits: [10/s]", ""},
		"the second only watches":           {"limits: [10/s]", "limits: [10/s], mode: shadow", ""},
		"the first delays":                  {"limits: [10/s], on_exceed: {action: delay, max_wait: 1s}", "limits: [10/s]", ""},
		"the second redirects":              {"limits: [10/s]", "limits: [10/s], on_exceed: {action: redirect, location: /b}", ""},
		"the first has overrides":           {"limits: [10/s], overrides: {192.0.2.1: {limits: [20/s]}}", "limits: [10/s]", ""},
		"the second has overrides":          {"limits: [10/s]", "limits: [10/s], overrides: {192.0.2.1: {limits: [1/s]}}", ""},
		"the first has no store":            {"limits: [10/s], fallback: allow", "limits: [10/s], fallback: deny", "a"},
		"the lower one allows then":         {"limits: [10/s], fallback: allow", "limits: [11/s], fallback: deny", ""},
		"one group, the narrower first":     {"group: g, match: {path: /a}, limits: [10/s]", "group: g, limits: [10/s]", ""},
		"one group, the wider first":        {"group: g, limits: [10/s]", "group: g, match: {path: /a}, limits: [10/s]", "b"},
		"one group, the wider has other":    {"group: g, limits: [9/m], algorithm: fixed_window", "group: g, match: {methods: [PUT]}, limits: [10/s]", "b"},
		"one group, another match":          {"group: g, match: {path: /a}, limits: [10/s]", "group: g, match: {path: /b}, limits: [10/s]", ""},
		"one group, the first watches":      {"group: g, limits: [10/s], mode: shadow", "group: g, limits: [10/s]", ""},
		"one group, both watch":             {"group: g, limits: [10/s], mode: shadow", "group: g, limits: [1/s], mode: shadow", "b"},
		"one group, the second watches":     {"group: g, limits: [10/s]", "group: g, limits: [1/s], mode: shadow", "b"},
		"one group, the first is off":       {"group: g, limits: [10/s], mode: off", "group: g, limits: [10/s]", ""},
		"one group, queries are apart":      {"group: g, limits: [10/s]", "group: g, match: {domain: a}, limits: [10/s]", ""},
		"the first skips some":              {"missing: skip, limits: [10/s]", "limits: [10/s]", ""},
		"one group, the first skips":        {"group: g, missing: skip, limits: [10/s]", "group: g, limits: [10/s]", ""},
		"another status":                    {"limits: [10/s]", "limits: [10/s], on_exceed: {status: 503}", "b"},
		"another algorithm":                 {"limits: [10/s]", "limits: [10/s], algorithm: sliding_log", ""},
		"windows that count refused ones":   {"limits: [10/s], algorithm: fixed_window, count_rejected: true", "limits: [10/s], algorithm: fixed_window", "b"},
		"windows that alone count those":    {"limits: [10/s], algorithm: fixed_window", "limits: [11/s], algorithm: fixed_window, count_rejected: true", ""},
		"as many sub-windows":               {"limits: [10/s], algorithm: sliding_window", "limits: [11/s], algorithm: sliding_window, sub_windows: 4", "b"},
		"other sub-windows":                 {"limits: [10/s], algorithm: sliding_window", "limits: [10/s], algorithm: sliding_window, sub_windows: 5", ""},
		"nothing passes either":             {"limits: [0/s]", "match: {path: /a}, limits: [0/s]", "b"},
		"nothing passes one":                {"limits: [0/s]", "limits: [5/s]", "b"},
	} {
		for _, evaluate := range []string{"all_or_nothing", "independent"} {
			t.Run(name+" "+evaluate, func(t *testing.T) {
				_, err := Parse("headgate.yaml", fmt.Appendf(nil, "version: 1\nevaluate: %s\nrules:\n  - {name: a, key: [ip], %s}\n  - {name: b, key: [ip], %s}\n",
					evaluate, row.a, row.b))
				got := ""
				if err != nil {
					name, _, found := strings.Cut(strings.TrimPrefix(err.Error(), "headgate.yaml:"), " never decides anything")
					if got = name[strings.LastIndex(name, ": ")+2:]; !found || strings.Contains(err.Error(), "\nheadgate") {
						t.Fatal(err)
					}
				}
				want := row.want
				if want != "" {
					want = fmt.Sprintf("%q", want)
				}
				// Independent rules cover each other only if they are equal.
				if evaluate == "independent" && !independentTwinNames[name] && !strings.HasPrefix(name, "one group") {
					want = ""
				}
				if got != want {
					t.Errorf("got %s, want %s: %v", got, want, err)
				}
			})
		}
	}
}

// independentTwinNames are the rows in which both rules decide alike.
var independentTwinNames = map[string]bool{
	"the same": true, "both cost the same": true, "the first warns": true, "the first has no store": true, "another status": true,
}

// TestOrderOfTheKeyDoesNotMatter: the same parts in another order are the same key.
func TestOrderOfTheKeyDoesNotMatter(t *testing.T) {
	_, err := Parse("headgate.yaml", []byte("version: 1\nrules:\n  - {name: a, key: [path, 'header:x'], limits: [5/s]}\n  - {name: b, key: ['header:X', path], limits: [5/s]}\n"))
	checkHeadlines(t, err, []string{`headgate.yaml:4:5: rules[1]: "b" never decides anything`})
}
