package guard_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// allowed sets FallbackAllow for a rule.
func allowed(r guard.Rule) guard.Rule {
	r.Fallback = guard.FallbackAllow
	return r
}

// TestAllowRefusesWhatNeverFits: while the store is unreachable, FallbackAllow refuses a cost above all that a limit can admit, and
// lets others pass.
func TestAllowRefusesWhatNeverFits(t *testing.T) {
	burst := allowed(byClient(t, "burst", "/burst", headgate.Limit{Count: 5, Per: time.Minute, Burst: 9}))
	burst.Policies[0].Algorithm = headgate.TokenBucket
	special := allowed(byClient(t, "special", "/special", perMinute(5)))
	special.Overrides = []guard.Override{{Value: "x", Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: perMinute(9)}}}}
	degraded := allowed(byClient(t, "degraded", "/degraded", perMinute(5)))
	degraded.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Over", Value: "yes"}
	hard := allowed(byClient(t, "hard", "/hard", perMinute(5)))
	hard.Exceed = degraded.Exceed
	hard.Exceed.Hard = headgate.Policy{Algorithm: headgate.FixedWindow, Limit: perMinute(9)}
	banned := allowed(byClient(t, "banned", "/banned", perMinute(9)))
	banned.Ban = guard.Ban{After: perMinute(2), For: time.Minute}
	shadow := allowed(byClient(t, "shadow", "/shadow", perMinute(5)))
	shadow.Mode = guard.Shadow
	two := allowed(byClient(t, "two", "/two", perMinute(9), headgate.Limit{Count: 20, Per: time.Hour}))
	g, store, _ := alone(t, allowed(byClient(t, "plain", "/plain", perMinute(9))), two,
		burst, special, degraded, hard, banned, shadow, byClient(t, "deny", "/deny", perMinute(9)),
	)
	for _, row := range []struct {
		path   string
		cost   int64
		want   headgate.Verdict
		reason headgate.Reason
	}{
		{"/plain", 9, headgate.Allow, headgate.StoreUnavailable},
		{"/plain", 10, headgate.Deny, headgate.Never},
		{"/two", 9, headgate.Allow, headgate.StoreUnavailable},
		{"/two", 10, headgate.Deny, headgate.Never},
		{"/burst", 9, headgate.Allow, headgate.StoreUnavailable},
		{"/burst", 10, headgate.Deny, headgate.Never},
		{"/special", 9, headgate.Allow, headgate.StoreUnavailable},
		{"/special", 10, headgate.Deny, headgate.Never},
		{"/degraded", 1000, headgate.Allow, headgate.StoreUnavailable},
		{"/hard", 9, headgate.Allow, headgate.StoreUnavailable},
		{"/hard", 10, headgate.Deny, headgate.Never},
		{"/banned", 9, headgate.Allow, headgate.StoreUnavailable},
		{"/shadow", 10, headgate.Allow, headgate.Never},
		{"/deny", 10, headgate.Deny, headgate.StoreUnavailable},
	} {
		req := request(row.path, "x")
		req.Cost = row.cost
		a := decide(t, g, req)
		r := cmp.Or(a.Closest(), &a.Results[0]) // The result in shadow is no closest one.
		if a.Verdict != row.want || r.Decision.Reason != row.reason || !r.Fallback || a.StoreError == nil {
			t.Errorf("%s with a cost of %d: %v for %v (%v), want %v for %v", row.path, row.cost, a.Verdict, r.Decision.Reason, a.StoreError,
				row.want, row.reason)
		}
		if a.Verdict == headgate.Deny && row.reason == headgate.Never && (fields.Status(a) != 429 || a.RetryAfter() != 0) {
			t.Errorf("%s: status %d, retry after %s: the request can never pass", row.path, fields.Status(a), a.RetryAfter())
		}
	}
	req := request("/plain", "x")
	req.Cost, req.Kind = 10, headgate.Refund
	if a := decide(t, g, req); a.Closest().Decision.Reason == headgate.Never {
		t.Error("units of several requests cannot be given back")
	}
	if store.calls == 0 {
		t.Error("the store was not called")
	}
}

// TestAllowBillsNoneThatNeverFits: a meter bills no units above the hard limit of a plan, which no request can have.
func TestAllowBillsNoneThatNeverFits(t *testing.T) {
	l := newLedger()
	g, _ := newGuard(t, guard.Config{
		Store: &shaky{Store: inMemory(t, nil), down: true}, Meter: l, Rules: []guard.Rule{allowed(counting(t, "api", "/a"))},
		Quotas: quotas(t, []guard.Plan{metering(10, 20)}),
	})
	for _, row := range []struct {
		cost    int64
		verdict headgate.Verdict
		want    string
	}{
		{15, headgate.Allow, "x/calls 15 0 0;"},
		{20, headgate.Allow, "x/calls 20 0 0;"},
		{21, headgate.Deny, "x/calls 0 0 21;"},
	} {
		if a := decide(t, g, costing(row.cost, headgate.Take)); a.Verdict != row.verdict {
			t.Errorf("a cost of %d: %v, want %v", row.cost, a.Verdict, row.verdict)
		}
		l.want(t, "without the store", row.want)
	}
}
