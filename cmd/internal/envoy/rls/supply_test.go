package rls_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// TestRulesOfOtherParts checks that a query is refused if a rule for it counts by what no query of descriptors has, and that nothing is
// counted.
func TestRulesOfOtherParts(t *testing.T) {
	keyed := func(name string, m rule.Match, key string) guard.Rule {
		part, err := rule.ParsePart(key)
		if err != nil {
			t.Fatal(err)
		}
		return guard.Rule{Rule: rule.Rule{Name: name, Match: m, Key: []rule.Part{part}}, Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Hour, Burst: 1}}}}
	}
	s := serve(t, rls.Options{}, guard.Config{Rules: []guard.Rule{
		keyed("addresses", rule.Match{Domain: "d", Descriptors: map[string]string{"k": "a"}}, "ip"),
		keyed("entries", rule.Match{Domain: "d"}, "descriptor:k"),
		keyed("web", rule.Match{}, "ip"),
	}})
	for range 3 {
		_, err := s.ShouldRateLimit(t.Context(), request("d", asked("k", "b"), asked("k", "a")))
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), `rule "addresses" counts by ip, which Envoy's rate limit service cannot give`) {
			t.Errorf("the answer is %v", err)
		}
	}
	s.tell("d", []step{{"the other rule has counted nothing", descriptors(asked("k", "b")), "ok ok(0 of 1/HOUR, 1h0m0s)"}})
}

// TestRulesInShadowOfOtherParts checks that a rule in shadow refuses no query, whatever it counts by.
func TestRulesInShadowOfOtherParts(t *testing.T) {
	part, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, rls.Options{}, guard.Config{Rules: []guard.Rule{{
		Rule: rule.Rule{Name: "addresses", Match: rule.Match{Domain: "d"}, Key: []rule.Part{part}}, Mode: guard.Shadow,
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Hour, Burst: 1}}},
	}}})
	for range 3 {
		if r, err := s.ShouldRateLimit(t.Context(), request("d", asked("k", "a"))); err != nil {
			t.Errorf("the answer is %v, %v", r, err)
		}
	}
}
