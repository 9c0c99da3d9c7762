package explain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
)

// writeRule describes the decision of one rule. All results belong to that rule.
func (e *explanation) writeRule(b *strings.Builder, results []guard.Result) {
	r, req := results[0].Rule, e.Seen()
	fmt.Fprintf(b, "\nrule %s", r.Name)
	if !results[0].Enforced() {
		b.WriteString(", which is in mode shadow: it reports this result, and does not enforce it")
	}
	b.WriteByte('\n')
	shared := ""
	if results[0].Shared && r.Missing == rule.MissingShared {
		shared = "; all requests without this value share the key"
	}
	linef(b, "key", "%s%s", r.KeyText(req), shared)
	if part, lacks := results[0].Lacks(); lacks {
		linef(b, "missing", "%s: the rule refuses requests without it", part)
		e.writeDecision(b, &results[0], results)
		return
	}
	e.writeCustomer(b, &results[0])
	e.writeOverride(b, r)
	writeStated(b, results[0].Stated)
	linef(b, "cost", "%s", costText(r, req))
	if r.Lease.Resource != "" {
		e.writeLease(b, r)
	} else {
		for i := range results {
			writeLimit(b, &results[i])
		}
	}
	e.writeDecision(b, strictest(results), results)
}

// writeStage describes the decision of a stage after the rules, which has neither a key nor a limit
// of units.
func (e *explanation) writeStage(b *strings.Builder, r *guard.Result) {
	fmt.Fprintf(b, "\nstage %s", r.Stage)
	if !r.Enforced() {
		b.WriteString(", which is in mode shadow: it reports this result, and does not enforce it")
	}
	b.WriteByte('\n')
	if t := e.Config.Throttle; t != nil && r.Stage == throttler.Name {
		most := field.Counted(t.Concurrency, "request")
		if t.Concurrency == 0 {
			most = span(t.CPUInFlight) + " of CPU time"
		}
		linef(b, "bound", "%s in flight at once; others wait in a queue of %s, within a deadline of %s", most,
			field.Counted(t.MaxWaiters, "request"), span(t.Deadline))
	}
	e.writeDecision(b, r, nil)
}

// writeOverride says which override applies to the request.
func (e *explanation) writeOverride(b *strings.Builder, r *guard.Rule) {
	if o := e.Override(r); o != nil {
		linef(b, "override", "%s", OverrideText(o))
	}
}

// OverrideText names the value of an override, what it does, and when it ends.
func OverrideText(o *guard.Override) string {
	text := strconv.Quote(o.Value)
	if o.Unlimited {
		text += ", unlimited: the rule does not count the request"
	}
	if o.Until != 0 {
		text += ", until " + o.Until.Time().UTC().Format(time.RFC3339)
	}
	return text
}

// writeStated says which limit decides under a rule with limits_from.
func writeStated(b *strings.Builder, s guard.Stated) {
	switch s {
	case guard.StatedUsed:
		linef(b, "limits", "those that the request states")
	case guard.StatedAbsent:
		linef(b, "limits", "those of the rule: the request states none")
	case guard.StatedInvalid:
		linef(b, "limits", "those of the rule: the request states an invalid one")
	default:
	}
}

// writeUncounted describes the rules that match and do not count the request, because an override is unlimited.
func (e *explanation) writeUncounted(b *strings.Builder) (some bool) {
	for _, r := range e.Uncounted() {
		fmt.Fprintf(b, "\nrule %s\n", r.Name)
		linef(b, "key", "%s", r.KeyText(e.Seen()))
		e.writeOverride(b, r)
		some = true
	}
	return some
}

func costText(r *guard.Rule, req *headgate.Request) string {
	if r.Announced {
		return field.Counted(max(1, req.Length), "byte") + ", as the request announces; at its end, those that have passed"
	}
	if r.CostHeader != "" && req.Header != nil {
		if stated, found := req.Header.Lookup(r.CostHeader); found {
			return fmt.Sprintf("%q, as %s says", stated, r.CostHeader)
		}
	}
	if r.Estimate != nil {
		return "an estimate of the tokens; at its end, those that the answer states"
	}
	return strconv.FormatInt(max(1, r.Cost), 10)
}

// writeLimit describes the remaining units of a limit, or the attempts before a ban.
func writeLimit(b *strings.Builder, r *guard.Result) {
	d := &r.Decision
	switch {
	case r.Policy == r.Rule.Name+"-ban" && d.Reason != headgate.Banned && r.Rule.BansAnswers():
		lengths := cmp.Or(config.GrowthText(&r.Rule.Ban), span(r.Rule.Ban.For))
		statuses := strings.Trim(fmt.Sprint(r.Rule.Count), "[]")
		linef(b, "ban", "%s: after %s answers with status %s, for %s", r.Policy, r.Limit, statuses, lengths)
		return
	case r.Policy == r.Rule.Name+"-ban" && d.Reason == headgate.Banned:
		linef(b, "ban", "%s: more than %s attempts were made; it ends in %s", r.Policy, r.Limit, span(d.RetryAfter))
		return
	case r.Policy == r.Rule.Name+"-ban":
		linef(b, "ban", "%s: after more than %s attempts, for %s; %d are left", r.Policy, r.Limit, span(r.Rule.Ban.For), d.Remaining)
		return
	case r.Policy == r.Rule.Name+"-in-flight":
		linef(b, "in flight", "%s: %d of %d left", r.Policy, d.Remaining, d.Limit)
		return
	}
	word := "limit"
	if r.Policy == r.Rule.Name+"-hard" {
		word = "hard"
	}
	text := fmt.Sprintf("%s: %s, %s: %d of %d left", r.Policy, r.Limit, algorithmOf(r), d.Remaining, d.Limit)
	if d.ResetAfter > 0 {
		text += ", all of it in " + span(d.ResetAfter)
	}
	if hard, after := r.Hard(); hard > 0 {
		text += fmt.Sprintf("; beyond them %s, up to %d", beyondText(after), hard)
	}
	linef(b, word, "%s", text)
}

// beyondText says what follows the included units of a plan.
func beyondText(after guard.After) string {
	if after == guard.AfterMeter {
		return "requests pass as metered units"
	}
	return "requests are marked as degraded"
}

// algorithmOf returns the algorithm of a limit.
func algorithmOf(r *guard.Result) string { return r.Algorithm().String() }

// strictest returns the result that decides for a rule.
func strictest(results []guard.Result) *guard.Result {
	worst := &results[0]
	for i := range results {
		r := &results[i]
		if r.Decision.Verdict > worst.Decision.Verdict ||
			r.Decision.Verdict == worst.Decision.Verdict && r.Decision.Reason > worst.Decision.Reason {
			worst = r
		}
	}
	return worst
}

// Strictest returns the result that decides for a rule, of all its results.
func Strictest(results []guard.Result) *guard.Result { return strictest(results) }

// writeDecision describes what the rule does with the request.
func (e *explanation) writeDecision(b *strings.Builder, r *guard.Result, results []guard.Result) {
	d, x := &r.Decision, &r.Rule.Exceed
	text := fmt.Sprintf("%s, %s", d.Verdict, d.Reason)
	switch {
	case d.Verdict == headgate.Wait:
		longest := time.Duration(0)
		for i := range results {
			longest = max(longest, results[i].Decision.RetryAfter)
		}
		text += ": it waits " + span(longest)
	case d.Verdict == headgate.Deny:
		text += ": " + refusalText(r)
	case d.Reason == headgate.Metered:
		text += fmt.Sprintf(": it passes, and the caller sees %s: %d", fields.FieldMetered, r.Beyond)
	case d.Reason == headgate.Degraded:
		text += fmt.Sprintf(": it passes, and the service sees %s: %s", x.Header, x.Value)
	case d.Reason == headgate.SoftLimit:
		text += fmt.Sprintf(": it passes, and caller and service see %s", guard.FieldMark)
	}
	linef(b, "decision", "%s", text)
}

// refusalText describes how a rule refuses, if no other rule refuses first.
func refusalText(r *guard.Result) string {
	alone := guard.Answer{Verdict: headgate.Deny, Results: []guard.Result{*r}}
	text := "status " + strconv.Itoa(fields.Status(&alone))
	if alone.Drops() {
		text = "the connection is closed without an answer"
	}
	if r.Rule.Exceed.Action == guard.Redirect && r.Rule.Exceed.Location != "" && r.Decision.Reason != headgate.KeyMissing {
		text += " to " + r.Rule.Exceed.Location
	}
	if r.Decision.RetryAfter > 0 {
		text += ", again in " + span(r.Decision.RetryAfter)
	}
	return text
}
