package guard

import (
	"context"
	"time"

	"github.com/headgate/headgate"
)

// settleFull refuses the waits of rules that have no free place to wait in. These have no booking.
// store is the store that has decided.
func (a *Answer) settleFull(ctx context.Context, s *set, store headgate.Store) {
	for i := range a.Results {
		r := &a.Results[i]
		if !r.full || r.op < 0 {
			continue
		}
		a.usual = false
		if r.mode == headgate.Peek && r.Decision.Reason == headgate.WithinLimit && (s.countsAlone(r) || !a.refuses()) {
			a.takeFull(ctx, r, store)
		}
		if d := &r.Decision; d.Verdict == headgate.Wait || d.Reason == headgate.OverLimit {
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

// takeFull takes the units of a leaky bucket after a Peek: a Take could have booked a departure.
// Another request may have taken the units in between. This request is then refused.
func (a *Answer) takeFull(ctx context.Context, r *Result, store headgate.Store) {
	ops := [1]headgate.Op{a.asks.ops[r.op]}
	ops[0].Kind = headgate.Take
	var taken [1]headgate.Decision
	if err := store.Apply(ctx, ops[:], taken[:]); err != nil {
		a.StoreError = err
		r.Decision = unavailable(r)
		return
	}
	r.Decision = taken[0]
}

// countsAlone reports whether the units of r do not depend on other rules.
func (s *set) countsAlone(r *Result) bool {
	return s.independent || !r.Enforced() || r.window.beside
}

// refuses reports whether an enforced limit refuses the request.
func (a *Answer) refuses() bool {
	for i := range a.Results {
		if r := &a.Results[i]; r.Enforced() && r.Decision.Verdict == headgate.Deny && !r.window.beside {
			return true
		}
	}
	return false
}
