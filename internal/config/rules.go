package config

import (
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// maxRules bounds the rules of one file.
const maxRules = 65_536

const ruleExample = `{name: product, key: [ip], limits: ["500/2s"]}`

// rules reads the rules and checks them against each other.
func (s *section) rules(c *Config) {
	s.requiredUnless("rules", "write at least one, or rules: [] to limit nothing", fairShareName, domainsName, sourceName, leaseName)
	s.refuseTable("rules")
	entries, _ := s.list("rules", "["+ruleExample+"]", 0, maxRules)
	c.Rules = make([]guard.Rule, len(entries))
	read := make([]bool, len(entries))
	if c.Shared != nil {
		c.prefetch = make([]rulePrefetch, len(entries))
	}
	for i, v := range entries {
		c.Rules[i].Fallback = c.Fallback
		if v.node != nil && !s.full {
			one := s.section(v, "write it like "+ruleExample)
			s.declare("rules", field.Taken, "Limits. Each rule that matches a request counts it, and the strictest answer applies.")
			one.outline = s.outline.field("rules").entries()
			prefetch, ok := one.rule(&c.Rules[i])
			if read[i] = ok; c.Shared != nil {
				c.prefetch[i] = prefetch
			}
		}
	}
	s.checkFallbacks(c)
	s.checkRules(c, read)
}

// checkRules checks the rules against each other and against the rest of c. read tells which
// rules were read without a fault.
func (r *reader) checkRules(c *Config, read []bool) {
	r.noteAll(check.Matching(c.Rules, read, r.blamed))
	r.noteAll(check.PolicyNames(c.Rules))
	r.noteAll(check.Keys(c.Rules, r.identityFacts(c)))
	r.checkLimitsFrom(c)
	r.noteAll(check.DecisionHeaders(c.Rules, c.Identity.UserIPHeaders))
	r.noteAll(check.Policies(c.Rules, c.Domains))
	if !r.blamed("max_memory") {
		r.noteAll(check.Capacity(c.Rules, c.Domains, c.memory(), r.blamed))
	}
	r.noteAll(check.LeftOut(c.Rules, read, r.blamed))
	r.noteAll(check.Reach(c.Rules, c.Independent, read, r.blamed))
	r.readsRules(c)
	r.noteAll(check.Groups(c.Rules, c.Source != nil, read, r.blamed))
}

// noteAll notes each finding at its position in the file.
func (r *reader) noteAll(findings []check.Finding) {
	for _, f := range findings {
		r.fault(r.find(f.Path), f.Problem, f.Fix)
	}
}

// rule reads one rule, and returns its resulting prefetch. It reports false if some fields of
// the rule are unknown because of a merge key.
func (s *section) rule(r *guard.Rule) (rulePrefetch, bool) {
	if s.self.node == nil {
		return rulePrefetch{}, false
	}
	s.required("name", "give the rule a name, like name: product")
	s.text(s.declare("name", field.Taken, "1 to 64 letters, digits, -, _ and . that no other rule has; callers, metrics and logs "+
		"show it."), &r.Name)
	s.declare("match", field.Taken, "Requests that the rule applies to: all given fields must match. Default: every "+
		"request.")
	s.match(&r.Match, withBodies)
	s.group(r)
	s.declare("exempt", field.Taken, "Requests that the rule leaves out, although they match: those that any entry matches. An entry has "+
		"the fields "+
		"of match.")
	s.exemptMatches(&r.Exempt, withBodies)
	s.key(&r.Key)
	s.missingPart(r)
	s.quota(r)
	s.leaseRule(r)
	sh := s.shape()
	s.calendar(r)
	excess := s.exceed(&r.Exceed, &sh)
	s.quotaAction(r, excess)
	s.outcome(r)
	s.requiredUnless("limits", limitsFix, "in_flight", "quota", leaseName, "ban")
	own := s.limits(sh)
	r.Policies = own.policies
	all := append([]limits{own}, s.overrides(r, sh)...)
	all = append(all, s.limitsFrom(r, sh)...)
	excess.hard(&r.Exceed, sh, all)
	s.checkCalendar(r, all)
	s.cost(r, all)
	s.bodySettings(r)
	s.soft(r, own)
	s.ban(r, all)
	oneOf(s, s.declare("mode", field.Taken, "enforce refuses requests; shadow only reports decisions; off disables the rule."),
		&r.Mode, []choice[guard.Mode]{
			{word: "enforce", value: guard.Enforce}, {word: "shadow", value: guard.Shadow}, {word: "off", value: guard.Off},
		})
	oneOf(s, "fallback", &r.Fallback, choicesOf(guard.Fallbacks()))
	s.declare("fallback", field.Taken, "Answer of the rule when the store fails. Default: fallback of the top level.")
	s.outline.field("fallback").dependent()
	s.leaseTerms(r, sh.policy.Algorithm, excess)
	s.checkLocal(r, all)
	prefetch := s.rulePrefetch(r, sh, all)
	s.checkLimitless(r, excess)
	s.checkFits(r, all)
	s.end()
	return prefetch, !s.merged
}

// maxMatches bounds each list of a match.
const maxMatches = 1000

// key reads the parts of the key that the rule counts.
func (s *section) key(into *[]rule.Part) {
	s.required("key", "write what to count by, like key: [ip]; [all] counts all requests together")
	s.declare("key", field.Taken, "One to three parts. Requests with the same parts count together.")
	s.outline.field("key").entries().written("", keyPattern)
	entries, complete := s.scalars("key", "[header:X-Client-Id]", rule.MaxParts)
	parts := make([]rule.Part, 0, len(entries))
	for _, v := range entries {
		part, err := rule.ParsePart(v.text())
		if err != nil {
			s.parseFault(v, err)
			complete = false
			continue
		}
		parts = append(parts, part)
	}
	if complete {
		*into = parts
	}
}
