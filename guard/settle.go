package guard

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
)

// settle makes the rules' last word of what the store has decided. Most requests
// stay within every limit, and need none of it.
func (g *Guard) settle(ctx context.Context, s *set, req *headgate.Request, a *Answer) {
	g.noteBans(req, a)
	a.soften()
	if a.local != nil {
		a.owned()
	}
	a.judge()
	g.hold(a)
	g.undo(ctx, s, a)
}

// soften lets pass what soft limits and degrading do.
func (a *Answer) soften() {
	for i := range a.Results {
		r := &a.Results[i]
		d := &r.Decision
		switch {
		case r.Rule.Soft > 0 && d.Reason == headgate.WithinLimit && r.window.kind == kindLimit && overSoft(d, r.Rule.Soft):
			d.Reason = headgate.SoftLimit
		case d.Verdict == headgate.Deny && r.degrades():
			d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.Degraded, 0
		case d.Verdict == headgate.Wait && d.Receipt.Empty() && r.Rule.Exceed.Action == Degrade && r.window.kind == kindLimit:
			// Another limit of the rule is used up, or its key is banned: nothing is booked to wait for.
			d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.Degraded, 0
		}
		a.denied = a.denied || d.Verdict == headgate.Deny
	}
}

// overSoft reports whether what is used, this request included, is more than soft
// percent of the limit. Limits are below 2^53, so that nothing overflows.
func overSoft(d *headgate.Decision, soft int) bool {
	return (d.Limit-d.Remaining)*100 > int64(soft)*d.Limit
}

// degrades reports whether a refusal is one that the rule lets pass for less. Its
// ban is one of them where there is no hard limit: then the rule refuses nothing.
// For want of a place or of an answer nothing is degraded: the fallbacks decide.
func (r *Result) degrades() bool {
	if r.Rule.Exceed.Action != Degrade {
		return false
	}
	switch r.Decision.Reason {
	case headgate.OverLimit, headgate.Never, headgate.QueueFull, headgate.WaitTooLong:
		return r.window.kind == kindLimit
	case headgate.Banned:
		return r.Rule.Exceed.Hard.Limit.Per == 0
	default:
		return false
	}
}

// undo returns what a refused request took beside the group that refused it: the
// limits of rules that degrade, and bookings for which no waiter had room. What
// counts refused attempts stays counted.
func (g *Guard) undo(ctx context.Context, s *set, a *Answer) {
	if !a.denied {
		return
	}
	a.receipts = a.receipts[:0]
	var booked []*Result
	for i := range a.Results {
		r := &a.Results[i]
		if r.Decision.Receipt.Empty() || r.member != nil || r.window.countsRejected {
			continue
		}
		together := r.Enforced() && !s.independent && a.Verdict == headgate.Deny
		switch {
		case !together && !a.refusedBy(r.Rule):
			if r.Enforced() && a.Verdict == headgate.Deny && r.Decision.Verdict == headgate.Wait {
				g.handOn(a, r) // It stays counted, and this request does not go then.
			}
		case r.Decision.RetryAfter > 0:
			booked = append(booked, r)
		default:
			a.receipts = append(a.receipts, r.Decision.Receipt)
			r.Decision.Receipt = headgate.Receipt{}
		}
	}
	if len(a.receipts) == 0 && len(booked) == 0 {
		return
	}
	if a.local == nil && !a.deadline.IsZero() {
		// It is the store's time that is bounded, and not the client's who leaves meanwhile.
		bounded, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.deadline)
		defer cancel()
		ctx = bounded
	}
	for _, r := range booked {
		a.StoreError = errors.Join(a.StoreError, g.offer(ctx, a, r))
	}
	if len(a.receipts) > 0 {
		a.StoreError = errors.Join(a.StoreError, g.giveBack(ctx, a))
	}
}

// refusedBy reports whether a rule refuses. Its results stand together.
func (a *Answer) refusedBy(of *Rule) bool {
	for i := range a.Results {
		if r := &a.Results[i]; r.Rule == of && r.Decision.Verdict == headgate.Deny {
			return true
		}
	}
	return false
}
