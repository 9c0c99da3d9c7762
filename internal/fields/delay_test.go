package fields_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// TestDelay checks the wait that refused clients read: exact up to the bound, spread if no time is known, and none if no time
// helps. A refusal above a minute discourages retries, if the guard is configured so.
func TestDelay(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name        string
		reason      headgate.Reason
		wait, most  time.Duration
		want        []time.Duration // each of them must be seen
		discourages bool
	}{
		{"exact", headgate.OverLimit, 1500 * time.Millisecond, 0, []time.Duration{1500 * time.Millisecond}, false},
		{"a minute", headgate.OverLimit, time.Minute, 0, []time.Duration{time.Minute}, false},
		{"above a minute", headgate.Banned, time.Minute + 1, 0, []time.Duration{time.Minute + 1}, true},
		{"a month, by default", headgate.OverLimit, 30 * day, 0, []time.Duration{day}, true},
		{"a month, within the most", headgate.OverLimit, 30 * day, guard.MostRetryAfter, []time.Duration{guard.MostRetryAfter}, true},
		{"the bound does not hide the length", headgate.OverLimit, time.Hour, time.Second, []time.Duration{time.Second}, true},
		{"in flight", headgate.InFlight, 0, 0, []time.Duration{time.Second, 2 * time.Second}, false},
		{"no store", headgate.StoreUnavailable, 0, 0, []time.Duration{time.Second, 2 * time.Second}, false},
		{"never", headgate.Never, 0, 0, []time.Duration{0}, true},
	} {
		rules := []guard.Rule{named("a", guard.Enforce)}
		store := scripted{decisions: []headgate.Decision{{Verdict: headgate.Deny, Reason: c.reason, RetryAfter: c.wait}}}
		for _, should := range []bool{false, true} {
			g, err := guard.New(guard.Config{Rules: rules, Store: store, RetryAfterMax: c.most, XShouldRetry: should})
			if err != nil {
				t.Fatal(err)
			}
			a := new(guard.Answer)
			if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, a); err != nil {
				t.Fatal(err)
			}
			seen := map[time.Duration]bool{}
			for range 100 { // Of two values, one of 2^99 runs sees only one.
				seen[fields.Delay(a)] = true
			}
			for _, want := range c.want {
				if !seen[want] || len(seen) != len(c.want) {
					t.Errorf("%s: got %v, want %v", c.name, seen, c.want)
				}
			}
			if got := fields.Discourages(a); got != (should && c.discourages) {
				t.Errorf("%s: Discourages is %v with XShouldRetry %v", c.name, got, should)
			}
		}
	}
	for _, most := range []time.Duration{-1, time.Millisecond, guard.MostRetryAfter + 1} {
		if _, err := guard.New(guard.Config{RetryAfterMax: most}); err == nil {
			t.Errorf("New accepts a RetryAfterMax of %v", most)
		}
	}
}
