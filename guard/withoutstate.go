package guard

import (
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// SourceName is the name of the refusals with Config.WithoutState in Result.Stage, logs and metrics. Its brackets keep it apart from
// the rules of a configuration. No stage can have it.
const SourceName = "(source)"

// sourcePolicy is the name that callers see.
const sourcePolicy = "source"

// SourceRule returns the rule that describes the refusals with Config.WithoutState in logs and to callers.
func SourceRule() Rule {
	return Rule{Rule: rule.Rule{Name: SourceName}, Exceed: Exceed{Action: Reject}}
}

// refuseWithoutState refuses a request whose rules are not known. A probe of gRPC passes: it would restart the service.
func (s *set) refuseWithoutState(req *headgate.Request, a *Answer) {
	if s.probe(req) {
		return
	}
	a.matched = s.match(req, a, a.matched[:0])
	s.identify(req, a, a.matched)
	for _, m := range a.matched {
		if s.missesPlan(&s.rules[m], req, a) {
			return
		}
	}
	r := a.nextResult()
	*r = Result{
		Rule: &s.unknown, Policy: sourcePolicy, Stage: SourceName, op: opDecided, window: &s.uncounted,
		Decision: headgate.Decision{Verdict: headgate.Deny, Reason: headgate.SourceUnavailable},
	}
	a.usual = false
}

// missesPlan adds the refusal of a rule, if it is enforced and the plan of the request's customer is missing.
func (s *set) missesPlan(p *prepared, req *headgate.Request, a *Answer) bool {
	if p.Quota == "" || p.Mode != Enforce {
		return false
	}
	key, name, shared := s.customerKey(p, req, a)
	_, plan := s.quotas.find(key[name:], s.guard)
	if !s.quotas.plans[plan].Missing {
		return false
	}
	s.addMissing(p, p.effects[plan], a, key, name, shared)
	return true
}

// customerKey gives the key of a rule with a quota, and where the customer's name begins in it. It is valid until the next Decide.
func (s *set) customerKey(p *prepared, req *headgate.Request, a *Answer) (key string, name int, shared bool) {
	from := len(a.keys)
	a.keys, name, shared = p.AppendCustomerKey(append(a.keys, p.space...), req)
	// The store reads the key only during Apply, and nothing writes to it until then.
	key = unsafe.String(unsafe.SliceData(a.keys[from:]), len(a.keys)-from) //nolint:gosec // A copy would be an allocation.
	return key, name - from, shared
}

// addMissing adds the refusal of a rule whose customer has a plan that is missing. No store counts it. shown is the rule as the results
// show it.
func (s *set) addMissing(p *prepared, shown *Rule, a *Answer, key string, name int, shared bool) {
	r := a.nextResult()
	*r = Result{
		Rule: shown, Policy: p.Name, Number: p.number, Shared: shared, from: p, key: key, nameAt: name, op: opDecided, window: &s.uncounted,
		Decision: headgate.Decision{Verdict: headgate.Deny, Reason: headgate.PlanMissing},
	}
	a.usual = false
}
