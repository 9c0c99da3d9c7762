package check

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

// TestUnreachedNeverRefuses sends random requests to random pairs of rules. A rule that
// unreached calls covered must refuse no request that the other rule allows.
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
		t.Errorf("got %d covered rules, want at least 200", compared)
	}
}

// drawRule returns a random rule with small counts and periods, so that rules often cover each other.
func drawRule(draw *rand.Rand, name, path string) guard.Rule {
	// Sliding windows come more often, because coversWindow is the least obvious case.
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

// refuseNothing sends requests to both paths, in bursts and with pauses, and checks
// that rule i never refuses a request that rule cover allows.
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

// TestWindowsThatStandAcross uses a period of 5s and one of 2s. The longer window covers the
// shorter one with two sub-windows, but not with one: then the weight of old requests
// falls in the longer window while the shorter window still counts them.
func TestWindowsThatStandAcross(t *testing.T) {
	policy := func(count int64, per time.Duration, subWindows int) headgate.Policy {
		return headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: subWindows, Limit: headgate.Limit{Count: count, Per: per}}
	}
	for subWindows, want := range map[int]bool{1: false, 2: true, 3: true} {
		if got := Covers(policy(6, 5*time.Second, subWindows), policy(6, 2*time.Second, subWindows)); got != want {
			t.Errorf("%d sub-windows: Covers is %t, want %t", subWindows, got, want)
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

// TestManyRulesAreCompared checks that the number of steps grows linearly with the number of
// rules. Only rules of one spot are compared in pairs, up to maxReachSteps.
func TestManyRulesAreCompared(t *testing.T) {
	limit := headgate.Limit{Count: 500, Per: 2 * time.Second}
	for name, match := range map[string]func(i int) rule.Match{
		"other paths":   func(i int) rule.Match { return rule.Match{Path: fmt.Sprintf("/v1/%d/*", i)} },
		"other tenants": func(i int) rule.Match { return rule.Match{Headers: map[string]string{"t": fmt.Sprint("t", i)}} },
		"other hosts":   func(i int) rule.Match { return rule.Match{Hosts: []string{fmt.Sprintf("h%d.a", i)}} },
		"other limits":  func(int) rule.Match { return rule.Match{} },
		"other conditions": func(i int) rule.Match {
			tenant := map[string]string{"t": fmt.Sprint("t", i)}
			return rule.Match{
				Path: strings.Repeat("/a", 1+i%60), Methods: []string{fmt.Sprint("M", i)}, Hosts: []string{fmt.Sprintf("h%d.a", i)},
				Headers: tenant, Descriptors: tenant,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := 2_000
			if race.On {
				n = 200
			} else if name == "other paths" {
				n = 10_000
			}
			ip, err := rule.ParsePart("ip")
			if err != nil {
				t.Fatal(err)
			}
			rules := make([]guard.Rule, n)
			for i := range rules {
				p := headgate.Policy{Limit: limit}
				if name == "other limits" {
					p.Limit = headgate.Limit{Count: int64(2*i + 2), Per: time.Duration(i+1) * time.Millisecond}
				}
				rules[i] = guard.Rule{
					Rule:     rule.Rule{Name: fmt.Sprint("r", i), Match: match(i), Key: []rule.Part{ip}},
					Policies: []headgate.Policy{p},
				}
			}
			search := newSearch(rules, false)
			by := search.run(func(int) bool { return true })
			if used := maxReachSteps - search.steps; used > 100*len(rules) && name != "other limits" {
				t.Errorf("comparing %d rules takes %d steps, want at most 100 a rule", len(rules), used)
			}
			if search.steps < -10 || slices.ContainsFunc(by, func(i int) bool { return i >= 0 }) {
				t.Errorf("the search leaves %d steps, want at least -10, and rules covered by %v, want -1 for each", search.steps, by)
			}
		})
	}
}
