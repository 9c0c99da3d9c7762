package fields_test

import (
	"strconv"
	"strings"
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
			seen := map[time.Duration]bool{}
			for range 100 { // Of two values, one of 2^99 runs sees only one.
				if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, a); err != nil {
					t.Fatal(err)
				}
				seen[fields.Delay(a)] = true
				wantOneDraw(t, a)
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

// wantOneDraw checks that the text, Retry-After, RateLimit and the pushback of gRPC state one time.
func wantOneDraw(t *testing.T, a *guard.Answer) {
	t.Helper()
	r := a.Closest()
	if !fields.IsSpread(a) || r.Final() {
		return
	}
	seconds := strconv.FormatInt(fields.RetryAfter(r), 10)
	limit := string(fields.AppendRateLimit(nil, r))
	if fields.Delay(a).String() != seconds+"s" || fields.Pushback(r) != seconds+"000" ||
		!strings.HasSuffix(fields.Detail(r), "retry in "+seconds+" s.") || !strings.HasSuffix(limit, ";t="+seconds) {
		t.Errorf("a wait of %v: %s, %q, %q", fields.Delay(a), fields.Pushback(r), fields.Detail(r), limit)
	}
}
