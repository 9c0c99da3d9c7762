package guard

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// withKeys removes from matched the rules that do not apply to a request without a part of their key.
func (s *set) withKeys(req *headgate.Request, matched []int) []int {
	kept := matched[:0]
	for _, m := range matched {
		if p := &s.rules[m]; p.Missing == rule.MissingSkip {
			if _, lacks := p.Lacks(req); lacks {
				continue
			}
		}
		kept = append(kept, m)
	}
	return kept
}

// addLacking adds the refusal of a rule whose key the request lacks a part of. No store counts it, and an enforced refusal makes the
// store take nothing for the other enforced rules. shown is the rule as the results show it.
func (s *set) addLacking(p *prepared, shown *Rule, req *headgate.Request, a *Answer, key string, name int) {
	part, _ := p.Lacks(req)
	r := a.nextResult()
	*r = Result{
		Rule: shown, Policy: p.Name, Number: p.number, Shared: true, from: p, key: key, nameAt: name, op: opDecided, window: &s.uncounted,
		lacks: uint8(part), Decision: headgate.Decision{Verdict: headgate.Deny, Reason: headgate.KeyMissing},
	}
	a.usual = false
	a.lacking = a.lacking || shown.Mode == Enforce
}

// Lacks gives the part of the rule's key that a request refused with KeyMissing lacks. It reports false for other results.
func (r *Result) Lacks() (part rule.Part, lacks bool) {
	if r.Decision.Reason != headgate.KeyMissing || r.Rule == nil || int(r.lacks) >= len(r.Rule.Key) {
		return rule.Part{}, false
	}
	return r.Rule.Key[r.lacks], true
}
