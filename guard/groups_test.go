package guard_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// inGroup is byClient in a group, with a mode.
func inGroup(tb testing.TB, name, path, group string, mode guard.Mode) guard.Rule {
	tb.Helper()
	r := byClient(tb, name, path, perMinute(1000))
	r.Group, r.Mode = group, mode
	return r
}

// resultsOf gives the rules of the results, and how much each has used.
func resultsOf(a *guard.Answer) map[string]int64 {
	used := map[string]int64{}
	for i := range a.Results {
		d := &a.Results[i].Decision
		used[a.Results[i].Rule.Name] = d.Limit - d.Remaining
	}
	return used
}

// TestAlternatives compares the rules that decide with the words of the documents, in random configurations: a rule decides unless
// an enforced rule of its group before it matches, and a rule in shadow also unless another one in shadow does. Rules that do
// not decide count nothing.
func TestAlternatives(t *testing.T) {
	paths, groups := []string{"/*", "/a/*", "/a/b", "/c"}, []string{"", "g", "h"}
	for seed := range uint64(300) {
		draw := rand.New(rand.NewPCG(seed, 1))
		rules := make([]guard.Rule, 1+draw.IntN(8))
		for i := range rules {
			rules[i] = inGroup(t, fmt.Sprint("r", i), paths[draw.IntN(len(paths))], groups[draw.IntN(len(groups))], guard.Mode(draw.IntN(3)))
		}
		g, _ := newGuard(t, guard.Config{Rules: rules})
		counted := map[string]int64{}
		for range 12 {
			path := []string{"/", "/a", "/a/b", "/c"}[draw.IntN(4)]
			for _, r := range slowAlternatives(rules, path) {
				counted[r]++
			}
			for name, used := range resultsOf(decide(t, g, request(path, "x"))) {
				if used != counted[name] {
					t.Fatalf("seed %d, %s: rule %s has used %d, want %d", seed, path, name, used, counted[name])
				}
				counted[name] = -counted[name]
			}
			for _, r := range slowAlternatives(rules, path) {
				if counted[r] >= 0 {
					t.Fatalf("seed %d, %s: rule %s has not decided", seed, path, r)
				}
				counted[r] = -counted[r]
			}
			for name, n := range counted {
				if n < 0 {
					t.Fatalf("seed %d, %s: rule %s has decided", seed, path, name)
				}
			}
		}
	}
}

// slowAlternatives gives the names of the rules that decide on a path.
func slowAlternatives(rules []guard.Rule, path string) (names []string) {
	matches := func(r *guard.Rule) bool {
		prefix, below := strings.CutSuffix(r.Match.Path, "/*")
		return r.Mode != guard.Off && (path == prefix || below && strings.HasPrefix(path, prefix+"/"))
	}
	for i := range rules {
		r := &rules[i]
		displaced := slices.ContainsFunc(rules[:i], func(before guard.Rule) bool {
			return before.Group == r.Group && r.Group != "" && matches(&before) && (before.Mode == guard.Enforce || r.Mode == guard.Shadow)
		})
		if matches(r) && !displaced {
			names = append(names, r.Name)
		}
	}
	return names
}

// verifier counts the tokens that it verifies, and finds none valid.
type verifier struct{ calls int }

func (v *verifier) Verify(string) (headgate.Values, bool) {
	v.calls++
	return nil, false
}

// TestAlternativesNeedNothing: no token is verified for a rule that does not decide, and a group costs no allocation.
func TestAlternativesNeedNothing(t *testing.T) {
	byToken := inGroup(t, "token", "/*", "g", guard.Enforce)
	part, err := rule.ParsePart("jwt:sub")
	if err != nil {
		t.Fatal(err)
	}
	byToken.Key = []rule.Part{part}
	tokens := new(verifier)
	g, _ := newGuard(t, guard.Config{
		Rules:    []guard.Rule{inGroup(t, "upload", "/upload", "g", guard.Enforce), byToken},
		Identity: &rule.Identity{Tokens: tokens},
	})
	for path, want := range map[string]int{"/upload": 0, "/": 1} {
		req := request(path, "x")
		req.Header = headers{"X-Client-Id": "x", "Authorization": "Bearer a.b.c"}
		tokens.calls = 0
		if decide(t, g, req); tokens.calls != want {
			t.Errorf("%s: %d tokens were verified, want %d", path, tokens.calls, want)
		}
	}
	a, req := new(guard.Answer), request("/upload", "x")
	if n := testing.AllocsPerRun(200, func() { _ = g.Decide(t.Context(), req, a) }); n != 0 {
		t.Errorf("a decision with a group allocates %v times", n)
	}
}

// TestTooManyGroups: a Config has at most MaxGroups groups.
func TestTooManyGroups(t *testing.T) {
	rules := make([]guard.Rule, guard.MaxGroups+1)
	for i := range rules {
		rules[i] = inGroup(t, fmt.Sprint("r", i), fmt.Sprint("/", i), fmt.Sprint("g", i), guard.Enforce)
	}
	g, _ := newGuard(t, guard.Config{Rules: rules[:guard.MaxGroups]})
	if a := decide(t, g, request(fmt.Sprint("/", guard.MaxGroups-1), "x")); len(a.Results) != 1 {
		t.Errorf("the rule of the last group has %d results, want 1", len(a.Results))
	}
	if err := g.Reload(guard.Config{Rules: rules, Store: g.Store()}); err == nil || !strings.Contains(err.Error(), "use fewer groups") {
		t.Errorf("a group too many: %v", err)
	}
}
