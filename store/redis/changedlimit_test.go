package redis_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/rule"
)

// limitHeader has the limit that a request states.
type limitHeader string

// Lookup gives the limit under the name X-Limit.
func (h limitHeader) Lookup(name string) (string, bool) {
	return string(h), name == "X-Limit" && h != ""
}

// TestChangedLimitsKeepTheCount: used units stay used when a request states another limit or none, and when an override begins and
// ends.
func TestChangedLimitsKeepTheCount(t *testing.T) {
	server := testserver.Start(t)
	part := func(text string) rule.Part {
		p, err := rule.ParsePart(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const long = 300 * 24 * time.Hour // No unit refills during the test.
	for _, algorithm := range headgate.Algorithms() {
		t.Run(algorithm.String(), func(t *testing.T) {
			policies := func(n int64) []headgate.Policy {
				p := headgate.Policy{Algorithm: algorithm, Limit: headgate.Limit{Count: n, Per: long}}
				if algorithm == headgate.SlidingWindow {
					p.SubWindows = 4
				}
				return []headgate.Policy{p}
			}
			c := guard.Config{
				Store: newStore(t, server.Addr, nil), Identity: &rule.Identity{TrustUnix: true},
				Rules: []guard.Rule{{
					Rule: rule.Rule{Name: algorithm.String(), Key: []rule.Part{part("xff_ip")}}, Policies: policies(3),
					LimitsFrom: guard.LimitsFrom{Value: part("header:X-Limit"), Most: policies(9)[0]},
				}},
			}
			g, err := guard.New(c)
			if err != nil {
				t.Fatal(err)
			}
			var a guard.Answer
			for _, step := range []struct {
				states    limitHeader
				overrides []guard.Override
				pass      int
			}{
				{states: "2", pass: 2},
				{pass: 1},
				{states: "5", pass: 2},
				{states: "1", pass: 0},
				{overrides: []guard.Override{{Value: "10.0.0.0/8", Many: true, Policies: policies(7)}}, pass: 2},
				{overrides: []guard.Override{{Value: "10.0.0.0/8", Many: true, Unlimited: true}}, pass: 20},
				{pass: 0},
				{states: "100", pass: 2},
			} {
				c.Rules[0].Overrides = step.overrides
				if err := g.Reload(c); err != nil {
					t.Fatal(err)
				}
				n := 0
				for ; n < 20; n++ {
					req := &headgate.Request{XFFIP: netip.MustParseAddr("10.1.2.3"), Header: step.states}
					if err := g.Decide(t.Context(), req, &a); err != nil || a.StoreError != nil {
						t.Fatal(err, a.StoreError)
					}
					if a.Verdict == headgate.Deny {
						break
					}
				}
				if n != step.pass {
					t.Errorf("with %q and %d overrides, %d pass, want %d", step.states, len(step.overrides), n, step.pass)
				}
			}
		})
	}
}
