package guard_test

import (
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/storetest"
)

// TestPreflights: rules do not count a preflight, unless they name its method. A rule with requests in flight alone, and fair share,
// decide on preflights too.
func TestPreflights(t *testing.T) {
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	once := []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Hour}}}
	g, _, _ := sharing(t, guard.Config{
		Store:     inMemory(t, storetest.NewClock()),
		FairShare: among(t, func(f *guard.FairShare) { f.Match = rule.Match{Path: "/shared"} }),
		Rules: []guard.Rule{
			{Rule: rule.Rule{Name: "counts", Match: rule.Match{Path: "/counts"}, Key: []rule.Part{all}}, Policies: once},
			{Rule: rule.Rule{Name: "named", Match: rule.Match{Path: "/named", Methods: []string{"GET", "OPTIONS"}}, Key: []rule.Part{all}}, Policies: once},
			{Rule: rule.Rule{Name: "flight", Match: rule.Match{Path: "/flight"}, Key: []rule.Part{all}}, InFlight: 1},
			{Rule: rule.Rule{Name: "both", Match: rule.Match{Path: "/both"}, Key: []rule.Part{all}}, Policies: once, InFlight: 1},
		},
	})
	const twice = "allow" + " allow"
	for path, want := range map[string]string{
		"/counts": twice, "/named": "allow deny", "/both": twice, "/flight": "needs its end", "/shared": "deny" + " deny",
	} {
		preflight := headgate.Request{Method: "OPTIONS", Path: path, Preflight: true}
		var end *guard.EndError
		var a guard.Answer
		failed := g.Decide(t.Context(), &preflight, &a)
		got := "needs its end"
		if !errors.As(failed, &end) {
			got = a.Verdict.String() + " " + verdict(t, g, preflight).String()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if got := verdict(t, g, headgate.Request{Method: "GET", Path: "/counts"}); got != headgate.Allow {
		t.Errorf("after the preflights, a request gets %v: they have taken its unit", got)
	}
}
