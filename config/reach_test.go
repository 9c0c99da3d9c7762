package config

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestUnreached tells, for two rules of one key, which of them never decides
// anything. The first is "a", the second "b".
func TestUnreached(t *testing.T) {
	for name, row := range map[string]struct{ a, b, want string }{
		"the same":                         {"limits: [10/s]", "limits: [10/s]", "b"},
		"the second allows more":           {"limits: [10/s]", "limits: [11/s]", "b"},
		"the first allows more":            {"limits: [11/s]", "limits: [10/s]", "a"},
		"one is wider, the other lower":    {"match: {path: /*}, limits: [11/s]", "match: {path: /a}, limits: [10/s]", ""},
		"the wider one is as low":          {"match: {path: /a}, limits: [10/s]", "limits: [10/s]", "a"},
		"below a prefix":                   {"match: {path: /a/*}, limits: [10/s]", "match: {path: /a/b/c}, limits: [10/s]", "b"},
		"a prefix below a prefix":          {"match: {path: /a/*}, limits: [10/s]", "match: {path: /a/b/*}, limits: [10/s]", "b"},
		"the path of a prefix itself":      {"match: {path: /a/*}, limits: [10/s]", "match: {path: /a}, limits: [10/s]", "b"},
		"the path of a prefix as folder":   {"match: {path: /a/*}, limits: [10/s]", "match: {path: /a/}, limits: [10/s]", "b"},
		"a name that begins alike":         {"match: {path: /a/*}, limits: [10/s]", "match: {path: /ab}, limits: [10/s]", ""},
		"an exact path and its prefix":     {"match: {path: /a}, limits: [10/s]", "match: {path: /a/*}, limits: [10/s]", "a"},
		"exact paths":                      {"match: {path: /a}, limits: [10/s]", "match: {path: /a}, limits: [20/s]", "b"},
		"the root alone":                   {"match: {path: /}, limits: [10/s]", "match: {path: /*}, limits: [10/s]", "a"},
		"all of several limits are held":   {"limits: [10/s, 50/m]", "limits: [12/s, 60/m]", "b"},
		"one limit is lower":               {"limits: [10/s, 50/m]", "limits: [12/s, 49/m]", ""},
		"one limit has nothing like it":    {"limits: [10/s]", "limits: [12/s, 100/m]", ""},
		"a longer limit holds both":        {"limits: [10/m]", "limits: [10/s, 11/m]", "b"},
		"some methods of all":              {"limits: [10/s]", "match: {methods: [GET]}, limits: [10/s]", "b"},
		"the same methods":                 {"match: {methods: [PUT, GET]}, limits: [9/s]", "match: {methods: [GET, PUT, GET]}, limits: [10/s]", "b"},
		"other methods":                    {"match: {methods: [GET, PUT]}, limits: [9/s]", "match: {methods: [POST]}, limits: [10/s]", ""},
		"the same hosts":                   {"match: {hosts: [A.b]}, limits: [9/s]", "match: {path: /a, hosts: [a.B]}, limits: [10/s]", "b"},
		"other hosts":                      {"match: {hosts: [a.b]}, limits: [9/s]", "match: {hosts: [b.b]}, limits: [10/s]", ""},
		"the same headers":                 {"match: {headers: {x: 1}}, limits: [9/s]", "match: {headers: {X: 1}, methods: [GET]}, limits: [10/s]", "b"},
		"other values":                     {"match: {headers: {x: 1}}, limits: [9/s]", "match: {headers: {x: 2}}, limits: [10/s]", ""},
		"descriptors":                      {"match: {descriptors: {a: b}}, limits: [9/s]", "match: {headers: {a: b}, descriptors: {a: b}}, limits: [10/s]", "b"},
		"descriptors are no headers":       {"match: {descriptors: {a: b}}, limits: [9/s]", "match: {headers: {a: b}}, limits: [10/s]", ""},
		"a greater burst":                  {"limits: [10/s], burst: 5", "limits: [10/s], burst: 6", "b"},
		"a smaller burst at a higher rate": {"limits: [10/s], burst: 5", "limits: [11/s], burst: 4", ""},
		"one costs more":                   {"limits: [10/s]", "limits: [10/s], cost: 2", ""},
		"both cost the same":               {"limits: [10/s], cost: 1", "limits: [10/s]", "b"},
		"costs from one header":            {"limits: [10/s], cost: 'header:X'", "limits: [20/s], cost: 'header:x'", "b"},
		"a lower max_cost refuses more":    {"limits: [10/s], cost: 'header:X'", "limits: [20/s], cost: 'header:X', max_cost: 5", ""},
		"the first warns":                  {"limits: [10/s], soft: 50%", "limits: [10/s]", "b"},
		"the first bans":                   {"limits: [10/s], ban: {for: 1s}", "limits: [10/s]", "b"},
		"the second bans":                  {"limits: [10/s]", "limits: [10/s], ban: {for: 1s}", "a"},
		"both ban":                         {"limits: [10/s], ban: {for: 1s}", "limits: [10/s], ban: {for: 1s}", ""},
		"the first only watches":           {"limits: [10/s], mode: shadow", "limits: [10/s]", ""},
		"the first is off":                 {"limits: [10/s], mode: off", "limits: [10/s]", ""},
		"the second only watches":          {"limits: [10/s]", "limits: [10/s], mode: shadow", ""},
		"the first delays":                 {"limits: [10/s], on_exceed: {action: delay, max_wait: 1s}", "limits: [10/s]", ""},
		"the second redirects":             {"limits: [10/s]", "limits: [10/s], on_exceed: {action: redirect, location: /b}", ""},
		"the first has overrides":          {"limits: [10/s], overrides: {192.0.2.1: {limits: [20/s]}}", "limits: [10/s]", ""},
		"the second has overrides":         {"limits: [10/s]", "limits: [10/s], overrides: {192.0.2.1: {limits: [1/s]}}", ""},
		"the first has no store":           {"limits: [10/s], fallback: allow", "limits: [10/s], fallback: deny", "a"},
		"the lower one allows then":        {"limits: [10/s], fallback: allow", "limits: [11/s], fallback: deny", ""},
		"another status":                   {"limits: [10/s]", "limits: [10/s], on_exceed: {status: 503}", "b"},
		"another algorithm":                {"limits: [10/s]", "limits: [10/s], algorithm: sliding_log", ""},
		"windows that count refused ones":  {"limits: [10/s], algorithm: fixed_window, count_rejected: true", "limits: [10/s], algorithm: fixed_window", "b"},
		"windows that alone count those":   {"limits: [10/s], algorithm: fixed_window", "limits: [11/s], algorithm: fixed_window, count_rejected: true", ""},
		"as many sub-windows":              {"limits: [10/s], algorithm: sliding_window", "limits: [11/s], algorithm: sliding_window, sub_windows: 4", "b"},
		"other sub-windows":                {"limits: [10/s], algorithm: sliding_window", "limits: [10/s], algorithm: sliding_window, sub_windows: 5", ""},
		"nothing passes either":            {"limits: [0/s]", "match: {path: /a}, limits: [0/s]", "b"},
		"nothing passes one":               {"limits: [0/s]", "limits: [5/s]", "b"},
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
				// Rules that count apart decide apart, unless they are equal.
				if evaluate == "independent" && !independentTwinNames[name] {
					want = ""
				}
				if got != want {
					t.Errorf("got %s, want %s: %v", got, want, err)
				}
			})
		}
	}
}

// independentTwinNames are those rows of which the rules are equal in all that
// decides.
var independentTwinNames = map[string]bool{
	"the same": true, "both cost the same": true, "the first warns": true, "the first has no store": true, "another status": true,
}

// TestOrderOfTheKeyDoesNotMatter: the parts say together who is counted.
func TestOrderOfTheKeyDoesNotMatter(t *testing.T) {
	_, err := Parse("headgate.yaml", []byte("version: 1\nrules:\n  - {name: a, key: [path, 'header:x'], limits: [5/s]}\n  - {name: b, key: ['header:X', path], limits: [5/s]}\n"))
	checkHeadlines(t, err, []string{`headgate.yaml:4:5: rules[1]: "b" never decides anything`})
}

// TestUnreachedNeverRefuses is the claim itself: of two rules that are drawn at
// random, the one that is called unreached refuses nothing that the other allows,
// whatever requests come.
func TestUnreachedNeverRefuses(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 6_000 {
		rules := []guard.Rule{drawRule(draw, "a", "/a/*"), drawRule(draw, "b", "/a/b")}
		independent := draw.IntN(4) == 0
		if independent && draw.IntN(2) == 0 {
			rules[1] = rules[0]
			rules[1].Name = "b"
		}
		by := unreached(rules, independent, func(int) bool { return true })
		for i, other := range by {
			if other >= 0 {
				compared++
				refuseNothing(t, draw, rules, independent, i, other)
			}
		}
	}
	if compared < 200 {
		t.Errorf("only %d rules were unreached", compared)
	}
}

// drawRule gives a rule of few limits that are near each other.
func drawRule(draw *rand.Rand, name, path string) guard.Rule {
	// Sliding windows, whose claim is the least obvious, come more often.
	algorithms := append(headgate.Algorithms(), headgate.SlidingWindow, headgate.SlidingWindow)
	p := headgate.Policy{Algorithm: algorithms[draw.IntN(len(algorithms))]}
	switch p.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		p.Limit.Burst = draw.Int64N(4)
	case headgate.SlidingWindow:
		p.SubWindows = 1 + draw.IntN(3)
		fallthrough
	default:
		p.CountRejected = draw.IntN(4) == 0
	}
	r := guard.Rule{Rule: rule.Rule{Name: name, Match: rule.Match{Path: path}}}
	for i := range 1 + draw.IntN(2) {
		p.Limit.Count, p.Limit.Per = 1+draw.Int64N(6), time.Duration(1+i+draw.IntN(10))*(time.Second/2)
		if len(r.Policies) == 0 || r.Policies[0].Limit.Per != p.Limit.Per {
			r.Policies = append(r.Policies, p)
		}
	}
	return r
}

// refuseNothing sends requests of both paths, in bursts and with pauses, and holds
// that rule i never refuses what its cover allows.
func refuseNothing(t *testing.T, draw *rand.Rand, rules []guard.Rule, independent bool, i, cover int) {
	t.Helper()
	ip, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	now := headgate.Instant(time.Hour)
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: func() headgate.Instant { return now }})
	if err != nil {
		t.Fatal(err)
	}
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].Key = []rule.Part{ip}
	}
	g, err := guard.New(guard.Config{Rules: rules, Store: store, Independent: independent})
	if err != nil {
		t.Fatal(err)
	}
	var a guard.Answer
	for range 120 {
		now = now.Add(time.Duration(draw.Int64N(int64(time.Second) >> (4 * draw.IntN(3)))))
		req := &headgate.Request{Method: "GET", Path: "/a/b", IP: netip.MustParseAddr("192.0.2.1"), Cost: 1 + draw.Int64N(2)}
		if draw.IntN(3) == 0 {
			req.Path = "/a/c"
		}
		if err := g.Decide(t.Context(), req, &a); err != nil {
			t.Fatal(err)
		}
		refused := [2]bool{}
		for j := range a.Results {
			r := &a.Results[j]
			refused[r.Number] = refused[r.Number] || r.Decision.Verdict == headgate.Deny
		}
		if refused[i] && !refused[cover] {
			t.Fatalf("rule %s refuses at %d what %s allows (independent %t):\n%+v\n%+v",
				rules[i].Name, now, rules[cover].Name, independent, rules[i].Policies, rules[cover].Policies)
		}
	}
}

// TestWindowsThatStandAcross: a period of two and a half others covers them with
// two sub-windows, and not with one: there the greater window is half forgotten
// while the smaller one still counts.
func TestWindowsThatStandAcross(t *testing.T) {
	policy := func(count int64, per time.Duration, subWindows int) headgate.Policy {
		return headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: subWindows, Limit: headgate.Limit{Count: count, Per: per}}
	}
	for subWindows, want := range map[int]bool{1: false, 2: true, 3: true} {
		if got := covers(policy(6, 5*time.Second, subWindows), policy(6, 2*time.Second, subWindows)); got != want {
			t.Errorf("%d sub-windows: got %t", subWindows, got)
		}
	}
	now := headgate.Instant(10 * time.Second)
	store, err := memory.New(memory.Config{Clock: func() headgate.Instant { return now }})
	if err != nil {
		t.Fatal(err)
	}
	wide, err := store.Prepare(policy(6, 5*time.Second, 1))
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := store.Prepare(policy(6, 2*time.Second, 1))
	if err != nil {
		t.Fatal(err)
	}
	both := []headgate.Op{{Key: "a", Policy: wide, Cost: 6}, {Key: "a", Policy: narrow, Window: 1, Cost: 6}}
	var d [2]headgate.Decision
	for _, step := range []struct {
		at   time.Duration
		cost int64
		want [2]headgate.Verdict
	}{
		{14_900 * time.Millisecond, 6, [2]headgate.Verdict{headgate.Allow, headgate.Allow}},
		{15_900 * time.Millisecond, 1, [2]headgate.Verdict{headgate.Allow, headgate.Deny}},
	} {
		now = headgate.Instant(step.at)
		both[0].Cost, both[1].Cost = step.cost, step.cost
		if err := store.Apply(t.Context(), both, d[:]); err != nil {
			t.Fatal(err)
		}
		if got := [2]headgate.Verdict{d[0].Verdict, d[1].Verdict}; got != step.want {
			t.Errorf("at %s got %v, want %v", step.at, got, step.want)
		}
	}
}

// TestManyRulesAreCompared holds that rules which have much in common are
// compared in a time that does not grow with their square: all that stand at one
// spot are compared with each other, and only so far.
func TestManyRulesAreCompared(t *testing.T) {
	for name, text := range map[string]func(i int) string{
		"other paths": func(i int) string {
			return fmt.Sprintf("{name: r%d, match: {path: /v1/%d/*}, key: [ip], limits: [500/2s]}", i, i)
		},
		"other tenants": func(i int) string {
			return fmt.Sprintf("{name: r%d, match: {headers: {t: t%d}}, key: [ip], limits: [500/2s]}", i, i)
		},
		"other hosts": func(i int) string {
			return fmt.Sprintf("{name: r%d, match: {hosts: [h%d.a]}, key: [ip], limits: [500/2s]}", i, i)
		},
		"other limits": func(i int) string { return fmt.Sprintf("{name: r%d, key: [ip], limits: [%d/%dms]}", i, 2*i+2, i+1) },
		"other conditions": func(i int) string {
			return fmt.Sprintf("{name: r%d, match: {path: %s, methods: [M%d], hosts: [h%d.a], headers: {t: t%d}, descriptors: {t: t%d}}, key: [ip], limits: [500/2s]}",
				i, strings.Repeat("/a", 1+i%60), i, i, i, i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("version: 1\nrules:\n")
			n := 2_000
			if race.On {
				n = 200
			} else if name == "other paths" {
				n = 10_000
			}
			for i := range n {
				fmt.Fprintf(&b, "  - %s\n", text(i))
			}
			c := parsed(t, b.String())
			search := newSearch(c.Rules, false)
			by := search.run(func(int) bool { return true })
			if used := maxReachSteps - search.steps; used > 100*len(c.Rules) && name != "other limits" {
				t.Errorf("it takes %d steps", used)
			}
			if search.steps < -10 || slices.ContainsFunc(by, func(i int) bool { return i >= 0 }) {
				t.Errorf("%d steps are left, or a rule is unreached", search.steps)
			}
		})
	}
}
