package fields_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

func TestPushback(t *testing.T) {
	for _, c := range []struct {
		reason headgate.Reason
		retry  time.Duration
		want   string
	}{
		{headgate.OverLimit, 1500 * time.Millisecond, "1500"},
		{headgate.OverLimit, time.Millisecond + 1, "2"},
		{headgate.OverLimit, 1, "1"},
		{headgate.StoreUnavailable, 0, "*"},
		{headgate.InFlight, 0, "*"},
		{headgate.OverLimit, time.Minute, "60000"},
		{headgate.OverLimit, time.Minute + 1, "-1"},
		{headgate.Banned, time.Hour, "-1"},
		{headgate.Never, 0, "-1"},
	} {
		r := &guard.Result{Decision: headgate.Decision{Verdict: headgate.Deny, Reason: c.reason, RetryAfter: c.retry}}
		if got := fields.Pushback(r); got != c.want && (c.want != "*" || got != "1000" && got != "2000") {
			t.Errorf("reason %v with wait %v: got %q, want %q", c.reason, c.retry, got, c.want)
		}
	}
}
