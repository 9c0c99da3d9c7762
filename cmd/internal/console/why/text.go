package why

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/fields"
)

// ruleText says what a rule decides. r is the strictest of its results.
func ruleText(r *guard.Result, results []guard.Result) string {
	d := &r.Decision
	switch {
	case d.Verdict == headgate.Wait:
		would := "lets"
		if !r.Enforced() {
			would = "would let"
		}
		return fmt.Sprintf("%s the request wait for %s", would, explain.Span(d.RetryAfter))
	case d.Verdict == headgate.Deny:
		return refuses(r) + " the request" + because(r) + again(r)
	}
	switch d.Reason { //nolint:exhaustive // because the others are within the limit.
	case headgate.SoftLimit:
		return fmt.Sprintf("lets the request pass, with a warning: %s is nearly used up", r.Limit)
	case headgate.Degraded:
		return fmt.Sprintf("lets the request pass with %s: %s, because %s is used up", r.Rule.Exceed.Header, r.Rule.Exceed.Value, r.Limit)
	case headgate.Metered:
		return fmt.Sprintf("lets the request pass, and meters %s beyond the plan", field.Counted(r.Beyond, "unit"))
	case headgate.StoreUnavailable, headgate.StoreFull:
		return "lets the request pass, because the store cannot count it"
	}
	closest := r
	for i := range results {
		if one := &results[i]; one.Decision.Limit > 0 && left(one) < left(closest) {
			closest = one
		}
	}
	if closest.Decision.Limit == 0 {
		return "lets the request pass"
	}
	return fmt.Sprintf("lets the request pass: %d of %s (%s) left after it", closest.Decision.Remaining,
		field.Counted(closest.Decision.Limit, "unit"), closest.Policy)
}

func left(r *guard.Result) float64 {
	if r.Decision.Limit == 0 {
		return 1
	}
	return float64(r.Decision.Remaining) / float64(r.Decision.Limit)
}

// because gives the reason of a refusal by a rule.
func because(r *guard.Result) string {
	switch r.Decision.Reason {
	case headgate.KeyMissing:
		part, _ := r.Lacks()
		return fmt.Sprintf(": it has no %s, and missing is refuse", part)
	case headgate.Never:
		if r.Limit.Count == 0 {
			return ": its limit is 0, which admits nothing"
		}
		return fmt.Sprintf(": its cost of %d is more than %s ever admits", r.Cost(), r.Limit)
	case headgate.InFlight:
		return fmt.Sprintf(": the key has %d requests in flight, which is the most", r.Limit.Count)
	case headgate.QueueFull:
		return fmt.Sprintf(": the queue of %s is full", r.Limit)
	case headgate.WaitTooLong:
		return ": the wait would be longer than max_wait"
	case headgate.TooManyWaiters:
		return ": as many requests wait for the rule as may (max_waiters)"
	case headgate.StoreUnavailable:
		return ": the store does not answer, and the fallback is " + r.Rule.Fallback.String()
	case headgate.StoreFull:
		return ": the store has no place for another key, and on_full refuses"
	case headgate.PlanMissing:
		return ": the source has not given the plan of the customer"
	case headgate.SourceUnavailable:
		return ": the source has not given the rules, and without_state refuses"
	default:
		return fmt.Sprintf(": its limit of %s is used up", r.Limit)
	}
}

// again says when a refused request may go on.
func again(r *guard.Result) string {
	if r.Final() || r.Decision.RetryAfter <= 0 {
		return ""
	}
	return "; again in " + explain.Span(r.Decision.RetryAfter)
}

// throttleText says what the throttle decides.
func throttleText(r *guard.Result, q *admin.WhyQueue) string {
	load := fmt.Sprintf("%d in flight", q.InFlight)
	if q.Concurrency > 0 {
		load += fmt.Sprintf(" of %d", q.Concurrency)
	}
	load += fmt.Sprintf(", %d queued", q.Queued)
	if q.Hung {
		load += ", and the service answers nothing"
	}
	switch r.Decision.Verdict {
	case headgate.Wait:
		text := "queues the request (" + load + ")"
		if !r.Enforced() {
			text = "would queue the request (" + load + ")"
		}
		if q.WaitSeconds > 0 {
			text += ", probably for " + explain.Span(time.Duration(q.WaitSeconds*float64(time.Second)))
		}
		return text
	case headgate.Deny:
		reason := "the queue is full"
		if r.Decision.Reason == headgate.ThrottleDeadline {
			reason = "the service cannot answer before the deadline"
		}
		return fmt.Sprintf("%s the request: %s (%s)", refuses(r), reason, load) + again(r)
	default:
		return "lets the request go to the service (" + load + ")"
	}
}

// line is the request as one says it.
func (e *explanation) line() string { return e.sent.Method + " " + e.out.Request.Path }

// sentence says the verdict, why, and when the request may go on.
func (e *explanation) sentence() string {
	a := e.Answer
	closest := e.closest()
	switch {
	case a.Exempt:
		return e.line() + " passes: an entry of exempt matches, and nothing counts it."
	case a.Verdict == headgate.Deny && closest != nil:
		return e.refusal(closest)
	case a.Verdict == headgate.Wait:
		return e.waits(closest)
	}
	return e.passes(closest)
}

func (e *explanation) refusal(r *guard.Result) string {
	how := fmt.Sprintf("is refused with %d", e.Status)
	if e.out.Drops {
		how = "is dropped without an answer"
	}
	by, why := "rule "+r.Rule.Name, strings.TrimPrefix(because(r), ": ")
	switch {
	case r.Stage == guard.FairShareName:
		by, why = "fair share", strings.TrimPrefix(shareText(r, e.shareOf()), refuses(r)+" the request: ")
		why, _, _ = strings.Cut(why, "; again in ")
	case r.Stage == throttler.Name:
		by, why = "the throttle", strings.TrimSuffix(strings.ToLower(fields.Detail(r)[:1])+fields.Detail(r)[1:], ".")
		why, _, _ = strings.Cut(why, ": retry in ")
	case r.Stage == guard.SourceName:
		by = "this instance"
	case r.Decision.Reason == headgate.Banned:
		if entry := e.Guard.BanOf(e.Request, e.Answer, r); entry != nil {
			why = "its key is banned " + banReason(entry, r)
		}
	}
	text := fmt.Sprintf("%s %s by %s: %s", e.line(), how, by, why)
	if e.out.Key != "" {
		text += " (key " + e.out.Key + ")"
	}
	text += "."
	switch {
	case e.out.RetrySeconds > 0:
		text += fmt.Sprintf(" It may go on in %s.", explain.Span(r.Decision.RetryAfter))
	case r.Final():
		text += " Waiting does not help."
	}
	return text
}

func (e *explanation) waits(closest *guard.Result) string {
	if closest.Stage == throttler.Name {
		text := e.line() + " waits in the queue of the throttle"
		if e.Explained.QueueWait > 0 {
			text += ", probably for " + explain.Span(e.Explained.QueueWait)
		}
		return text + "."
	}
	return fmt.Sprintf("%s waits %s for rule %s, and then passes.", e.line(), explain.Span(e.Answer.RetryAfter()), closest.Rule.Name)
}

// nameOf names what decides.
func nameOf(r *guard.Result) string {
	switch r.Stage {
	case guard.FairShareName:
		return "Fair share"
	case throttler.Name:
		return "The throttle"
	default:
		return "Rule " + r.Rule.Name
	}
}

func (e *explanation) passes(closest *guard.Result) string {
	text := e.line() + " passes: "
	switch {
	case closest == nil && len(e.results) == 0:
		text += "no rule matches."
	case closest == nil:
		text += "no enforced rule counts it."
	case closest.Stage == guard.FairShareName:
		text += fmt.Sprintf("the closest limit is fair share, with %d of %s left after it.", closest.Decision.Remaining,
			field.Counted(closest.Decision.Limit, "unit"))
	default:
		text += fmt.Sprintf("the closest limit is %s (%s), with %d of %s left after it.", closest.Policy, closest.Limit,
			closest.Decision.Remaining, field.Counted(closest.Decision.Limit, "unit"))
	}
	if s := e.Answer.Shadowed(); s != nil && s.Decision.Verdict == headgate.Deny {
		alone := guard.Answer{Verdict: headgate.Deny, Results: []guard.Result{*s}}
		text += fmt.Sprintf(" %s in mode shadow would refuse it with %d", nameOf(s), fields.Status(&alone)) + again(s) + "."
	}
	return text
}
