package guard

import (
	"time"

	"github.com/headgate/headgate"
)

// settleFull names the reason of refusals by rules that have no free place to wait in.
func (a *Answer) settleFull() {
	for i := range a.Results {
		r := &a.Results[i]
		if !r.full || r.op < 0 {
			continue
		}
		a.usual = false
		if d := &r.Decision; d.Reason == headgate.OverLimit {
			noPlace(d, r.window.maxWait)
		}
	}
}

// noPlace turns a wait of d.RetryAfter into a refusal.
func noPlace(d *headgate.Decision, maxWait time.Duration) {
	d.Verdict, d.Reason = headgate.Deny, headgate.TooManyWaiters
	if maxWait > 0 && d.RetryAfter > maxWait {
		d.Reason = headgate.WaitTooLong
		d.RetryAfter -= maxWait
	}
}
