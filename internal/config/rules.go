package config

import (
	"fmt"

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
	r.noteAll(check.Reach(c.Rules, c.Independent, read, r.blamed))
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
	s.match(&r.Match)
	s.group(r)
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

// match reads which requests the rule applies to.
func (s *section) match(m *rule.Match) {
	match := s.sub("match", "{path: /v1/product}")
	match.declare("path", field.Taken, "An exact path, or a prefix: /search/* matches /search and all paths below it.")
	match.outline.field("path").text("", pathPattern, 0, 0)
	v, hasPath := match.textOf("path", &m.Path)
	if hasPath {
		match.checkPathLetters(v)
	}
	m.Methods = match.texts(match.declare("methods", field.Taken, "Methods, in capitals. The request must have one of the methods."),
		"[GET, HEAD]", maxMatches)
	if hasPath {
		match.methodOfPath(v, m)
	}
	m.Hosts = match.texts(match.declare("hosts", field.Taken, "Hosts, without port. The request must have one of the hosts. "+
		"*.example.com matches every name below example.com."), "[api.example.com]", maxMatches)
	match.pairs(match.declare("headers", field.Taken, "Headers and their values. The request must have all headers. * matches any value."),
		"{X-Tenant: a}", &m.Headers)
	match.pairs(match.declare("query", field.Taken, "Names and values of the query, decoded. The request must have all of them. * matches "+
		"any value."), "{format: json}", &m.Query)
	match.outline.field("domain").text("", "", 0, 0)
	match.textOf(match.declare("domain", field.Taken, "Domain of a query to a decision server, exactly. Rules that name neither a "+
		"domain nor descriptors match no such query."), &m.Domain)
	match.pairs(match.declare("descriptors", field.Taken, "Descriptors and their values in a query to a decision server. The query must "+
		"have all of them. * matches any value."), "{tenant: a}", &m.Descriptors)
	match.end()
}

// methodOfPath reads a path of Go's ServeMux that begins with a method: GET /users/{id}.
func (s *section) methodOfPath(v value, m *rule.Match) {
	method, path, found := rule.CutMethod(m.Path)
	switch {
	case !found:
	case len(m.Methods) > 0:
		s.fault(v, "begins with the method "+method+", beside the field methods", "write the method in one of them")
	default:
		m.Path, m.Methods = path, []string{method}
	}
}

// checkPathLetters rejects paths that no request can have, because the proxy cleans paths and
// refuses such requests before any rule applies.
func (r *reader) checkPathLetters(v value) {
	switch bad, at := rule.FaultyPathText(v.text()); {
	case bad == "":
	case len(bad) == 1:
		r.faultAt(v, at, "no request can have "+quote(bad)+" in its path", "remove it")
	default:
		r.fault(v, "no request can have a segment "+quote(bad)+" in its path", "remove it")
	}
}

// pairs reads a mapping of names to required values.
func (s *section) pairs(field, example string, into *map[string]string) {
	pairs := s.sub(field, example)
	pairs.outline.each(maxMatches).text("", "", 0, 0)
	if pairs.self.node == nil {
		return
	}
	if len(pairs.names) > maxMatches {
		s.fault(pairs.self, fmt.Sprintf("has %d %s", len(pairs.names), field), fmt.Sprintf("use at most %d", maxMatches))
		return
	}
	found := make(map[string]string, len(pairs.names))
	for _, name := range pairs.names {
		text := ""
		if _, ok := pairs.text(name, &text); ok {
			found[name] = text
		}
	}
	*into = found
}

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
