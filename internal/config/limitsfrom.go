package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

const (
	limitsFromName    = "limits_from"
	limitsFromExample = "{value: jwt:limits, most: 1000/m}"
)

// limitsFrom reads where requests state their limit. It returns the highest one in the list of limits.
func (s *section) limitsFrom(r *guard.Rule, sh shape) []limits {
	from := s.sub(s.declare(limitsFromName, field.Taken, "Lets requests state their limit, in a claim or in a header of a trusted proxy. "+
		"limits is then the default."), limitsFromExample)
	if from.self.node == nil {
		return nil
	}
	if s.has(limitsFromName) && !s.has("limits") {
		s.fault(s.keyOf(limitsFromName), "has no limits for requests that state none", limitsFix)
	}
	from.required("value", "write where requests state their limit, like value: jwt:limits")
	from.required("most", "write the highest limit that a request may state, like most: 1000/m")
	from.declare("value", field.Taken, "jwt:CLAIM, or header:NAME, which counts only from identity.trusted_proxies.")
	from.outline.field("value").written("", "^(jwt|header):.+$")
	if v, ok := from.scalar("value", "jwt:CLAIM or header:NAME"); ok {
		part, err := rule.ParsePart(v.text())
		switch word, _, _ := strings.Cut(v.text(), ":"); {
		case word != "jwt" && word != "header":
			from.fault(v, quote(v.text())+" cannot have a limit", "write jwt:CLAIM, or header:NAME for a header of a trusted proxy")
		case err != nil:
			from.parseFault(v, err)
		default:
			r.LimitsFrom.Value = part
		}
	}
	from.declare("most", field.Taken, "Highest limit that a request may state. A higher count in its period is lowered to it, and a "+
		"limit with "+
		"another period decides beside it.")
	from.outline.field("most").written("", limitPattern)
	v, ok := from.scalar("most", "a limit")
	from.end()
	if !ok || !sh.known {
		return nil
	}
	most := from.oneLimit(v, sh.policy)
	if len(most.policies) == 0 {
		return nil
	}
	r.LimitsFrom.Most = most.policies[0]
	if most.policies[0].Limit.Count == 0 {
		from.fault(v, "lets no request pass, whatever it states", "write limits, or a higher limit")
	}
	return []limits{most}
}

// checkLimitsFrom finds values for which the identity has no facts.
func (r *reader) checkLimitsFrom(c *Config) {
	id := r.identityFacts(c)
	for i := range c.Rules {
		value, most := c.Rules[i].LimitsFrom.Value, c.Rules[i].LimitsFrom.Most.Limit
		for _, p := range c.Rules[i].Policies {
			if value != (rule.Part{}) && most.Per == p.Limit.Per && 0 < most.Count && most.Count < p.Limit.Count {
				r.noteAll([]check.Finding{{
					Path:    fmt.Sprintf("rules[%d].limits_from.most", i),
					Problem: fmt.Sprintf("is below %s in limits: who states a limit gets less than who states none", p.Limit),
					Fix:     fmt.Sprintf("write most: %s or more, or lower limits", p.Limit),
				}})
				break
			}
		}
		var problem, fix string
		switch {
		case value == rule.Part{} || id.Unknown:
			continue
		case value.Word() == "jwt" && !id.Tokens:
			problem, fix = "no token can be verified", "set identity.jwt.keys"
		case value.Word() == "header" && !id.Trusted:
			problem, fix = "no proxy is trusted to state a limit", "set identity.trusted_proxies, or use a claim"
		default:
			continue
		}
		r.noteAll([]check.Finding{{Path: fmt.Sprintf("rules[%d].limits_from.value", i), Problem: problem, Fix: fix}})
	}
}

// writeLimitsFrom says which limits requests state. Writing to a strings.Builder never fails.
func (c *Config) writeLimitsFrom(b *strings.Builder) {
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.LimitsFrom.Value == (rule.Part{}) {
			continue
		}
		trusted := ""
		if r.LimitsFrom.Value.Word() == "header" {
			trusted = " of a trusted proxy"
		}
		var periods []string
		for _, p := range append([]headgate.Policy{r.LimitsFrom.Most}, r.Policies...) {
			if text := p.Limit.Period(); !slices.Contains(periods, text) {
				periods = append(periods, text)
			}
		}
		fmt.Fprintf(b, "\nlimits of %s: from %s%s, at most %s, with the period %s; else %s\n", r.Name, r.LimitsFrom.Value, trusted,
			r.LimitsFrom.Most.Limit, strings.Join(periods, " or "), limitsText(&guard.Rule{Policies: r.Policies}))
	}
}
