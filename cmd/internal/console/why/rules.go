package why

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// keyOf returns the key of a result in plain text.
func (e *explanation) keyOf(r *guard.Result) string {
	return string(r.AppendKey(nil, rule.PlainKeyNames()))
}

// banSteps describes the bans in force. Decisions look for them with the limits; they come first, because they explain the rest.
func (e *explanation) banSteps() {
	found, looked := false, false
	for i := range e.results {
		r := &e.results[i]
		if r.Stage != "" {
			continue
		}
		looked = true
		entry := e.Guard.BanOf(e.Request, e.Answer, r)
		if entry == nil {
			continue
		}
		found = true
		step := admin.WhyStep{
			Kind: admin.StepBan, Name: r.Rule.Name, Mode: modeText(r.Rule), Key: e.keyOf(r),
			Ban: &admin.WhyBan{ID: entry.ID, Until: entry.Until, Operator: entry.Operator, Why: banReason(entry, r)},
		}
		e.decided(&step, r, r)
		closest := e.closest()
		step.Decides = step.Decides && closest.Policy == r.Policy
		step.Text = fmt.Sprintf("%s the request: the key is banned until %s (in %s), %s", refuses(r), entry.Until.Format(time.RFC3339),
			explain.Span(r.Decision.RetryAfter), step.Ban.Why)
		step.Actions = e.banActions(r, entry)
		e.add(step)
	}
	if looked && !found {
		e.add(admin.WhyStep{Kind: admin.StepBan, Text: "no key of the request is banned"})
	}
}

// banReason names the cause of a ban: an operator with a reason, or attempts of the key.
func banReason(entry *guard.BanEntry, r *guard.Result) string {
	switch {
	case entry.Operator && entry.Reason != "":
		return "by an operator: " + entry.Reason
	case entry.Operator:
		return "by an operator"
	case r.Rule.BansAnswers():
		return fmt.Sprintf("after %s answers with status %s", r.Limit, strings.Trim(fmt.Sprint(r.Rule.Count), "[]"))
	default:
		return fmt.Sprintf("after more than %s attempts", r.Limit)
	}
}

// ruleSteps describes the rules that decide: those with a quota, or the others.
func (e *explanation) ruleSteps(kind string) {
	for from := 0; from < len(e.results); {
		to := from + 1
		for to < len(e.results) && e.results[to].Rule == e.results[from].Rule {
			to++
		}
		quota := e.results[from].Rule.Quota != ""
		if e.results[from].Stage == "" && quota == (kind == admin.StepQuota) {
			e.ruleStep(kind, from, to)
		}
		from = to
	}
}

// ruleStep describes one rule, whose results are from..to. A ban in force has a step of its own.
func (e *explanation) ruleStep(kind string, from, to int) {
	var own []guard.Result
	var limits []admin.KeyLimit
	var slots *admin.KeySlots
	for i := from; i < to; i++ {
		r := &e.results[i]
		if r.Decision.Reason == headgate.Banned {
			continue
		}
		own = append(own, *r)
		if l := e.Explained.Limits[i]; l != nil {
			limits = append(limits, limitOf(l))
		}
		if s := e.Explained.Slots[i]; s != nil {
			slots = &admin.KeySlots{Used: s.Used, Limit: s.Limit}
		}
	}
	if len(own) == 0 {
		return
	}
	r := deciding(own)
	step := admin.WhyStep{
		Kind: kind, Name: r.Rule.Name, Mode: modeText(r.Rule), Key: e.keyOf(r), Limits: limits, InFlight: slots, Lease: e.Lease(r.Rule),
	}
	e.decided(&step, r, r)
	for i := range own {
		step.Cost = max(step.Cost, own[i].Cost()) // A bound of requests in flight has none.
	}
	if closest := e.closest(); closest != nil && closest.Decision.Reason == headgate.Banned {
		step.Decides = false
	}
	if o := e.Override(r.Rule); o != nil {
		step.Override = explain.OverrideText(o)
	}
	if kind == admin.StepQuota {
		name, plan, entry := e.Customer(r.Rule)
		step.Customer = &admin.WhyPlan{Name: name, Plan: plan, Entry: entry != nil}
		if entry != nil {
			step.Customer.Note = entry.Note
		}
	}
	step.Text = ruleText(r, own)
	step.Unknown = e.unknownOf(r)
	if r.Decision.Verdict != headgate.Allow {
		step.Actions = e.ruleActions(r, step.Customer)
	}
	e.add(step)
}

// deciding returns the result that decides for a rule: of several refusals or waits, the longest.
func deciding(results []guard.Result) *guard.Result {
	worst := explain.Strictest(results)
	if worst.Decision.Verdict == headgate.Allow {
		return worst
	}
	for i := range results {
		r := &results[i]
		longer := r.Final() || r.Decision.RetryAfter > worst.Decision.RetryAfter
		if r.Decision.Verdict == worst.Decision.Verdict && !worst.Final() && longer {
			worst = r
		}
	}
	return worst
}

func limitOf(l *guard.LimitState) admin.KeyLimit {
	return admin.KeyLimit{
		Name: l.Policy, Limit: l.Limit.String(), Algorithm: l.Algorithm.String(), Used: l.Used, Remaining: l.Remaining,
		NextSeconds: l.Next.Seconds(), FullSeconds: l.Full.Seconds(), Never: l.Never,
	}
}

// unknownOf lists what of a rule depends on more than the request.
func (e *explanation) unknownOf(r *guard.Result) (all []string) {
	of := r.Rule
	statuses := strings.Trim(fmt.Sprint(of.Count), "[]")
	switch {
	case of.BansAnswers():
		all = append(all, fmt.Sprintf("answers with status %s count for the ban of the rule, and this one is not known", statuses))
	case len(of.Count) > 0:
		all = append(all, fmt.Sprintf("the request stays counted only if its answer has status %s", statuses))
	}
	switch {
	case of.Settle != "":
		all = append(all, fmt.Sprintf("the answer states the real cost in %s: the cost here is the estimate", of.Settle))
	case of.Bytes != 0:
		all = append(all, "the bytes of bodies are the real cost: the cost here is the estimate")
	}
	if of.Announced && e.Request.Length == 0 {
		all = append(all, "the length of the body is the cost: state it with length")
	}
	for _, p := range of.Key {
		if strings.HasPrefix(p.String(), "claim:") && e.Request.Claims == nil {
			all = append(all, fmt.Sprintf("%s is not known: the request has no verified token in Authorization", p))
		}
	}
	if r.Fallback {
		all = append(all, fmt.Sprintf("the counters of the rule cannot be read: its fallback decides (%s)", of.Fallback))
	}
	for i := range of.Policies {
		if of.Policies[i].CountRejected && r.Decision.Verdict == headgate.Deny {
			all = append(all, "the rule also counts refused attempts (count_rejected): each further attempt makes the refusal last longer")
			break
		}
	}
	return all
}
