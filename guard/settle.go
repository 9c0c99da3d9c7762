package guard

import (
	"context"
	"errors"

	"github.com/headgate/headgate"
)

// settle applies soft limits, Degrade and waits to the decisions of the store. Requests within
// every limit skip settle.
func (g *Guard) settle(ctx context.Context, s *set, req *headgate.Request, a *Answer) {
	if !req.Peek {
		g.noteBans(req, a)
	}
	a.soften()
	if a.local != nil || a.out {
		a.markFallbacks()
	}
	a.judge()
	if a.explains() != nil {
		return // Nothing is booked, and nothing was taken.
	}
	g.enqueueWaits(a)
	g.returnRefused(ctx, s, a)
}

// soften turns refusals into passes for soft limits and for Degrade.
func (a *Answer) soften() {
	for i := range a.Results {
		r := &a.Results[i]
		d := &r.Decision
		switch {
		case r.window.quota.ofQuota:
			r.charge(a.explains() != nil)
		case r.Rule.Soft > 0 && d.Reason == headgate.WithinLimit && r.window.kind == kindLimit && overSoft(d, r.Rule.Soft):
			d.Reason = headgate.SoftLimit
		case d.Verdict == headgate.Deny && r.degrades():
			d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.Degraded, 0
		case d.Verdict == headgate.Wait && d.Receipt.Empty() && r.Rule.Exceed.Action == Degrade && r.window.kind == kindLimit &&
			(a.explains() == nil || a.besideRefuses(r.Rule)):
			// Another limit of the rule is used up, or its key is banned, so no departure is booked.
			d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.Degraded, 0
		}
		a.denied = a.denied || d.Verdict == headgate.Deny
	}
}

// refuseWaits refuses what would have to wait: nothing is booked for it.
func (a *Answer) refuseWaits() {
	for i := range a.Results {
		if d := &a.Results[i].Decision; d.Verdict == headgate.Wait {
			d.Verdict, d.Reason = headgate.Deny, headgate.OverLimit
		}
	}
}

// overSoft reports whether the used units, this request included, are more than soft percent
// of the limit. Limits are below 2^53, so nothing overflows.
func overSoft(d *headgate.Decision, soft int) bool {
	return (d.Limit-d.Remaining)*100 > int64(soft)*d.Limit
}

// degrades reports whether the rule degrades this refusal into a pass. Without a hard limit,
// it degrades its ban too: such a rule refuses nothing by itself. The ban of an operator refuses. A refusal for lack of capacity or of
// an answer stays: the fallbacks decide it.
func (r *Result) degrades() bool {
	if r.Rule.Exceed.Action != Degrade {
		return false
	}
	switch r.Decision.Reason {
	case headgate.OverLimit, headgate.Never, headgate.QueueFull, headgate.WaitTooLong:
		return r.window.kind == kindLimit
	case headgate.Banned:
		return r.window.kind == kindBan && !r.Rule.Exceed.Hard.Limit.HasPeriod()
	default:
		return false
	}
}

// returnRefused returns units of a refused request that its refused group did not include: those of
// rules that degrade, and bookings without a free place to wait. The receipts of the guard's store are left to put. Counted
// refused attempts stay counted.
func (g *Guard) returnRefused(ctx context.Context, s *set, a *Answer) {
	if !a.denied {
		return
	}
	q := a.request
	from := len(q.receipts)
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
				g.handOn(a, r) // The booking stays counted, and this request will not use it.
			}
		case r.Decision.RetryAfter > 0:
			booked = append(booked, r)
		default:
			q.receipts = append(q.receipts, r.Decision.Receipt)
			r.Decision.Receipt = headgate.Receipt{}
		}
	}
	if len(booked) > 0 {
		g.offerAll(ctx, a, booked)
	}
	if a.local != nil && len(q.receipts) > from {
		a.StoreError = errors.Join(a.StoreError, notGivenBack(a.local.Return(ctx, q.receipts[from:])))
		q.receipts = q.receipts[:from]
	}
}

// offerAll returns bookings to their store, or leaves them to other requests.
func (g *Guard) offerAll(ctx context.Context, a *Answer, booked []*Result) {
	if a.local == nil && !a.deadline.IsZero() {
		// The deadline bounds the store's time. The client's context may have ended already.
		bounded, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.deadline)
		defer cancel()
		ctx = bounded
	}
	for _, r := range booked {
		a.StoreError = errors.Join(a.StoreError, g.offer(ctx, a, r))
	}
}

// refusedBy reports whether a rule refuses. The results of a rule are neighbours.
func (a *Answer) refusedBy(rule *Rule) bool {
	for i := range a.Results {
		if r := &a.Results[i]; r.Rule == rule && r.Decision.Verdict == headgate.Deny {
			return true
		}
	}
	return false
}
