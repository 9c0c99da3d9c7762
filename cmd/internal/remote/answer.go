package remote

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// Answer is the decision on a request, for a message.
type Answer struct {
	Verdict headgate.Verdict
	// Policy names the limit that decided, and Quota is that limit. Both are zero if no rule matches.
	Policy string
	Quota  headgate.Limit
	Reason headgate.Reason
	// Limit and Remaining are those of the decision, and 0 if they are not known.
	Limit, Remaining int64
	// RetryAfter is 0 for a refusal that waiting does not help. Delay is the time until the departure
	// of a request with the verdict Wait.
	RetryAfter, ResetAfter, Delay time.Duration
	// Status is the HTTP status of a refusal; otherwise 0.
	Status int
	// Location is the target of a rule that redirects.
	Location string
	// Fallback says that the store did not answer.
	Fallback bool
	// Metered is the number of the request's units that are beyond the included units of the customer's plan.
	Metered int64

	from *guard.Answer
}

// RetryAfterMax is the bound of RetryAfter for clients that hand it to a timer.
func (a *Answer) RetryAfterMax() time.Duration { return a.from.RetryAfterMax() }

// AppendDecision appends the name of a refusal, as the decision log has it: the instance, and the ID. It appends nothing without the
// name of an instance, and for other decisions.
func (a *Answer) AppendDecision(b []byte, instance string) []byte {
	if instance == "" || a.Verdict != headgate.Deny {
		return b
	}
	return a.from.DecisionID().AppendTo(b, instance)
}

// Undecided reports whether the store did not answer, and the fallback of a rule is error.
func Undecided(a *guard.Answer) bool {
	for i := range a.Results {
		if r := &a.Results[i]; r.Enforced() && r.Fallback && r.Rule.Fallback == guard.FallbackError {
			return true
		}
	}
	return false
}

// Read reads an answer of a guard into out. path is that of the request. The result is valid as long as the answer.
func Read(a *guard.Answer, path string, out *Answer) {
	*out = Answer{Verdict: a.Verdict, Metered: a.Metered(), from: a}
	closest := a.Closest()
	if closest == nil {
		return
	}
	d := &closest.Decision
	out.Policy, out.Reason, out.Fallback = closest.Policy, d.Reason, closest.Fallback
	if fields.Counted(closest) {
		out.Quota, out.Limit, out.Remaining, out.ResetAfter = closest.Quota(), d.Limit, d.Remaining, d.ResetAfter
	}
	switch {
	case a.Verdict == headgate.Wait:
		out.Delay = a.RetryAfter()
	case a.Verdict == headgate.Deny:
		out.Status, out.RetryAfter = fields.Status(a), a.RetryAfter()
		if closest.Rule.Exceed.Action == guard.Redirect && !d.Reason.Overloaded() && d.Reason != headgate.KeyMissing {
			out.Location = fields.Location(closest.Rule.Exceed.Location, path)
		}
	}
}

// Plain reports that the answer has no marks, no violated limits, no metered units and no fallback.
func (a *Answer) Plain() bool {
	if a.Verdict != headgate.Allow || a.Metered != 0 || a.Fallback {
		return false
	}
	for i := range a.from.Results {
		if r := &a.from.Results[i]; r.Decision.Reason != headgate.WithinLimit || r.AboveSoft {
			return false
		}
	}
	return true
}

// Marks calls yield with each header for the service: of rules that degrade, and the warning of soft
// limits.
func (a *Answer) Marks(yield func(name, value string)) {
	if a.Verdict == headgate.Deny {
		return
	}
	soft := false
	for i := range a.from.Results {
		r := &a.from.Results[i]
		if !r.Enforced() {
			continue
		}
		soft = soft || r.Decision.Reason == headgate.SoftLimit || r.AboveSoft
		if r.Decision.Reason == headgate.Degraded {
			yield(r.Rule.Exceed.Header, r.Rule.Exceed.Value)
		}
	}
	if soft {
		yield(guard.FieldMark, fields.Warning(a.from))
	}
}

// Violated calls yield with the name of each limit that refuses.
func (a *Answer) Violated(yield func(policy string)) {
	if a.Verdict != headgate.Deny {
		return
	}
	for i := range a.from.Results {
		if r := &a.from.Results[i]; r.Enforced() && r.Decision.Verdict == headgate.Deny {
			yield(r.Policy)
		}
	}
}
