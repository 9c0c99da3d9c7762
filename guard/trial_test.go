package guard_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// trialOf is a trial of a rule, with other limits.
func trialOf(r guard.Rule, limits ...headgate.Limit) guard.Rule {
	shape := r.Policies[0]
	r.TrialOf, r.Mode, r.Policies = r.Name, guard.Shadow, nil
	for _, l := range limits {
		shape.Limit = l
		r.Name += "." + l.String()
		r.Policies = append(r.Policies, shape)
	}
	r.Name = strings.ReplaceAll(r.Name, "/", "-")
	return r
}

// refusedByRule counts the refusals of each rule of an answer.
func refusedByRule(a *guard.Answer, into map[string]int) {
	for i := range a.Results {
		if r := &a.Results[i]; r.Decision.Verdict == headgate.Deny {
			into[r.Rule.Name]++
		}
	}
}

// TestTrialsOfSevenAndThree: beside a limit of five, ten requests are refused exactly as often as limits of seven and three would.
func TestTrialsOfSevenAndThree(t *testing.T) {
	for _, independent := range []bool{false, true} {
		own := byClient(t, "search", "/search", perMinute(5))
		g, _ := newGuard(t, guard.Config{
			Independent: independent, Rules: []guard.Rule{own, trialOf(own, perMinute(7)), trialOf(own, perMinute(3))},
		})
		refused, denied := map[string]int{}, 0
		for range 10 {
			a := decide(t, g, request("/search", "a"))
			if a.Verdict == headgate.Deny {
				denied++
			}
			refusedByRule(a, refused)
			if a.Shadowed() != nil || len(a.Matched()) != 1 {
				t.Errorf("the answer shows a trial: %v, %d rules", a.Shadowed(), len(a.Matched()))
			}
		}
		if denied != 5 || refused["search"] != 5 || refused["search.7-1m"] != 3 || refused["search.3-1m"] != 7 {
			t.Errorf("independent %t: %d requests and %v refused, want 5, 3 and 7", independent, denied, refused)
		}
	}
}

// TestTrialAgainstAGuardOfItsOwn: a trial refuses what a guard with its limits refuses, and changes no decision of its rule, with random
// limits, algorithms, costs and times.
func TestTrialAgainstAGuardOfItsOwn(t *testing.T) {
	for seed := range uint64(200) {
		draw := rand.New(rand.NewPCG(seed, 7))
		limit := func() headgate.Limit {
			return headgate.Limit{Count: 1 + draw.Int64N(12), Per: time.Duration(1+draw.IntN(5)) * time.Second}
		}
		own := byClient(t, "search", "/*", limit())
		own.Policies[0].Algorithm = []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingLog}[draw.IntN(3)]
		tried := trialOf(own, limit())
		alone := own
		alone.Policies = tried.Policies
		with, at := newGuard(t, guard.Config{Rules: []guard.Rule{own, tried}})
		without, atWithout := newGuard(t, guard.Config{Rules: []guard.Rule{own}})
		twin, atTwin := newGuard(t, guard.Config{Rules: []guard.Rule{alone}})
		for n := range 60 {
			req := func() *headgate.Request {
				r := request("/p", "a")
				r.Cost = 1 + int64(n%2)
				return r
			}
			got, plain, want := decide(t, with, req()), decide(t, without, req()), decide(t, twin, req())
			if got.Verdict != plain.Verdict || got.Results[0].Decision.Remaining != plain.Results[0].Decision.Remaining {
				t.Fatalf("seed %d, request %d: with the trial %+v, and without %+v", seed, n, got.Results[0].Decision, plain.Results[0].Decision)
			}
			if got.Results[1].Decision.Verdict != want.Verdict || got.Results[1].Decision.Remaining != want.Results[0].Decision.Remaining {
				t.Fatalf("seed %d, request %d: the trial decides %+v, and its limits %+v", seed, n, got.Results[1].Decision, want.Results[0].Decision)
			}
			pause := time.Duration(draw.IntN(700)) * time.Millisecond
			at.Advance(pause)
			atWithout.Advance(pause)
			atTwin.Advance(pause)
		}
	}
}

// TestTrialInAGroup: a trial decides on the requests on which its rule decides.
func TestTrialInAGroup(t *testing.T) {
	for _, mode := range []guard.Mode{guard.Enforce, guard.Shadow} {
		first := inGroup(t, "first", "/a", "g", guard.Enforce)
		own := inGroup(t, "own", "/*", "g", mode)
		next := inGroup(t, "next", "/b", "g", guard.Enforce)
		g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{first, own, trialOf(own, perMinute(7)), trialOf(own, perMinute(3)), next}})
		for path, want := range map[string]string{
			"/a": fmt.Sprint(map[string]int64{"first": 1}),
			"/c": fmt.Sprint(map[string]int64{"own": 1, "own.7-1m": 1, "own.3-1m": 1}),
		} {
			if got := fmt.Sprint(resultsOf(decide(t, g, request(path, path)))); got != want {
				t.Errorf("%s, %v: %s, want %s", path, mode, got, want)
			}
		}
	}
}

// TestTrialNeedsNoPermission: a sender that may use a rule does not need a permission for its trial.
func TestTrialNeedsNoPermission(t *testing.T) {
	own := byClient(t, "search", "/search", perMinute(5))
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{own, trialOf(own, perMinute(7))}})
	for name, want := range map[string]bool{"search": true, "other": false} {
		req := request("/search", "a")
		req.Permitted = func(asked string) bool { return asked == name }
		var a guard.Answer
		if err := g.Decide(t.Context(), req, &a); errors.As(err, new(*guard.PermitError)) == want {
			t.Errorf("a sender that may use %s: %v", name, err)
		}
	}
}

// TestTrialsThatCannotBe: a trial refuses nothing, and holds nothing.
func TestTrialsThatCannotBe(t *testing.T) {
	for name, change := range map[string]func(*guard.Rule){
		"enforced":  func(r *guard.Rule) { r.Mode = guard.Enforce },
		"in flight": func(r *guard.Rule) { r.InFlight = 1 },
		"ban":       func(r *guard.Rule) { r.Ban.For = time.Hour },
	} {
		own := byClient(t, "search", "/search", perMinute(5))
		tried := trialOf(own, perMinute(7))
		change(&tried)
		if _, err := guard.New(guard.Config{Store: ninetySeconds(t), Rules: []guard.Rule{own, tried}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
