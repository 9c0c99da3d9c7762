package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/config/check"
	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// maxRules bounds the rules of one file.
const maxRules = 65_536

const ruleExample = `{name: product, key: [ip], limits: ["500/2s"]}`

// rules reads the rules and checks them against each other.
func (s *section) rules(c *Config) {
	s.requiredUnless("rules", fairShareName, "write at least one, or rules: [] to limit nothing")
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
			s.declare("rules", field.Taken, "Every rule that matches a request counts it; the strictest answer is the answer.")
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
	r.noteAll(check.DecisionHeaders(c.Rules, c.Identity.UserIPHeaders))
	r.noteAll(check.Policies(c.Rules))
	if !r.blamed("max_memory") {
		r.noteAll(check.Capacity(c.Rules, c.memory(), r.blamed))
	}
	r.noteAll(check.Reach(c.Rules, c.Independent, read, r.blamed))
}

// noteAll notes each finding at its place in the file.
func (r *reader) noteAll(findings []check.Finding) {
	for _, f := range findings {
		r.fault(r.find(f.Path), f.Problem, f.Fix)
	}
}

// rule reads one rule, and gives what becomes of its prefetch. It reports false when
// its fields are not known.
func (s *section) rule(r *guard.Rule) (rulePrefetch, bool) {
	if s.self.node == nil {
		return rulePrefetch{}, false
	}
	s.required("name", "give the rule a name, like name: product")
	s.text(s.declare("name", field.Taken, "1 to 64 letters, digits, -, _ and . that no other rule has; callers, metrics and logs "+
		"show it."), &r.Name)
	s.declare("match", field.Taken, "Which requests the rule speaks for: all fields that are there must fit. Without it, every "+
		"request.")
	s.match(&r.Match)
	s.key(&r.Key)
	sh := s.shape()
	excess := s.exceed(&r.Exceed, &sh)
	own := s.limits(sh)
	r.Policies = own.policies
	all := append([]limits{own}, s.overrides(r, sh)...)
	excess.hard(&r.Exceed, sh, all)
	s.cost(r, all)
	s.soft(r, own)
	s.ban(r, all)
	oneOf(s, s.declare("mode", field.Taken, "enforce acts on what is decided; shadow decides and reports; off does not look."),
		&r.Mode, []choice[guard.Mode]{
			{word: "enforce", value: guard.Enforce}, {word: "shadow", value: guard.Shadow}, {word: "off", value: guard.Off},
		})
	oneOf(s, "fallback", &r.Fallback, fallbackWords())
	s.declare("fallback", field.Taken, "What the rule answers when its store cannot. Without it, what the top level says.")
	s.outline.field("fallback").dependent()
	s.checkLocal(r, all)
	prefetch := s.rulePrefetch(r, sh, all)
	s.checkFits(r, all)
	s.end()
	return prefetch, !s.merged
}

// maxMatches bounds each list of a match.
const maxMatches = 1000

// match reads which requests the rule speaks for.
func (s *section) match(m *rule.Match) {
	match := s.sub("match", "{path: /v1/product}")
	match.declare("path", field.Taken, "The path, exactly, or a prefix: /search/* is /search and all below.")
	match.outline.field("path").text("", pathPattern, 0, 0)
	if v, ok := match.textOf("path", &m.Path); ok {
		match.checkPathLetters(v)
	}
	m.Methods = match.texts(match.declare("methods", field.Taken, "One of these methods, in capitals."), "[GET, HEAD]", maxMatches)
	m.Hosts = match.texts(match.declare("hosts", field.Taken, "One of these hosts, without port; *.example.com is every name below "+
		"example.com."), "[api.example.com]", maxMatches)
	match.pairs(match.declare("headers", field.Taken, "Each of these headers with this value; * is any value."),
		"{X-Tenant: a}", &m.Headers)
	match.pairs(match.declare("descriptors", field.Taken, "Each of these entries that a decision server was asked with, with this "+
		"value; * is any value."), "{tenant: a}", &m.Descriptors)
	match.end()
}

// checkPathLetters refuses paths that no request has when its path is cleaned:
// requests with such are refused before any rule is asked.
func (r *reader) checkPathLetters(v value) {
	text := v.text()
	if bad := strings.IndexFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }); bad >= 0 {
		r.faultAt(v, bad, "no request comes here with "+quote(text[bad:bad+1])+" in its path", "leave it out")
		return
	}
	for segment := range strings.SplitSeq(text, "/") {
		if name, _, parameters := strings.Cut(segment, ";"); parameters && (name == "." || name == "..") {
			r.fault(v, "no request comes here with a segment "+quote(name+";")+" in its path", "leave it out")
			return
		}
	}
}

// pairs reads names and the values that they must have.
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

// key reads who is counted.
func (s *section) key(into *[]rule.Part) {
	s.required("key", "write who is counted, like key: [ip]; [all] counts everybody together")
	s.declare("key", field.Taken, "One to three parts, which together say who is counted.")
	s.outline.field("key").entries().written("", keyPattern)
	entries, whole := s.scalars("key", "[header:X-Client-Id]", rule.MaxParts)
	parts := make([]rule.Part, 0, len(entries))
	for _, v := range entries {
		part, err := rule.ParsePart(v.text())
		if err != nil {
			s.parseFault(v, err)
			whole = false
			continue
		}
		parts = append(parts, part)
	}
	if whole {
		*into = parts
	}
}
