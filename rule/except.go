package rule

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate"
)

// MaxExempt bounds the exempt matches of a rule, and those of a configuration.
const MaxExempt = 256

// each yields the match, and the one that it leaves out.
func (m *Match) each(yield func(*Match) bool) {
	if yield(m) && m.Not != nil {
		yield(m.Not)
	}
}

// matches yields all matches of the rule: its own, those that it leaves out, and the exempt ones.
func (r *Rule) matches(yield func(*Match) bool) {
	stopped := false
	one := func(m *Match) bool {
		stopped = stopped || !yield(m)
		return !stopped
	}
	r.Match.each(one)
	for i := range r.Exempt {
		if stopped {
			return
		}
		r.Exempt[i].each(one)
	}
}

// IsZero reports whether the match has no field, so that it matches every request.
func (m *Match) IsZero() bool {
	return m.Path == "" && len(m.Methods)+len(m.Hosts)+len(m.Headers)+len(m.Query)+len(m.Addresses)+len(m.Descriptors) == 0 &&
		m.Domain == "" && m.Model == "" && len(m.JSON) == 0 && m.Not == nil
}

// newExcept returns the index of what a rule leaves out; nil when it leaves out nothing. The rule was checked.
func newExcept(r *Rule, sets networkSets) *Index {
	var all []Rule
	if r.Match.Not != nil {
		all = append(all, Rule{Match: *r.Match.Not})
	}
	for i := range r.Exempt {
		all = append(all, Rule{Match: r.Exempt[i]})
	}
	if len(all) == 0 {
		return nil
	}
	return buildIndex(all, sets)
}

// any reports whether a rule of the index matches the request. Unlike Match, it lets rules without a domain match requests with one:
// what a rule leaves out is a set of requests. It allocates nothing.
func (x *Index) any(req *headgate.Request) bool {
	var s search
	s.index, s.req, s.single = x, req, true
	s.run()
	return s.hit
}

// MatchSet is a set of requests: those that match one of its matches. It is immutable and safe for concurrent use.
type MatchSet struct{ index *Index }

// NewMatchSet checks the matches, and makes their set. The error is a *RuleError, or joins several of them: their Rule is the position of
// the match, and their Field begins with "match.".
func NewMatchSet(matches []Match) (*MatchSet, error) {
	rules := make([]Rule, len(matches))
	for i := range matches {
		rules[i] = Rule{Name: fmt.Sprintf("match-%d", i), Match: matches[i], Key: []Part{{kind: partAll}}}
	}
	if err := checkRules(rules); err != nil {
		return nil, err
	}
	return &MatchSet{buildIndex(rules, networkSets{})}, nil
}

// Has reports whether the request is in the set. It allocates nothing.
func (s *MatchSet) Has(req *headgate.Request) bool { return s != nil && s.index.any(req) }

// First returns the position of the first match that the request has, or -1.
func (s *MatchSet) First(req *headgate.Request) int {
	if s == nil {
		return -1
	}
	found := search{index: s.index, req: req}
	found.run()
	if len(found.found) == 0 {
		return -1
	}
	return slices.Min(found.found)
}

// checkExcept checks what a rule leaves out.
func (c *checker) checkExcept(r *Rule) {
	if len(r.Exempt) > MaxExempt {
		c.note("exempt", fault{fmt.Sprintf("has %d entries", len(r.Exempt)), fmt.Sprintf("use at most %d, with lists in their fields",
			MaxExempt)})
		return
	}
	for i := range r.Exempt {
		field := fmt.Sprintf("exempt[%d]", i)
		if r.Exempt[i].IsZero() {
			c.note(field, fault{"has no field, so that the rule would match no request", "write at least one, like {methods: [OPTIONS]}"})
		}
		c.checkMatch(field, &r.Exempt[i])
	}
}

// checkNot checks the match that another one leaves out.
func (c *checker) checkNot(field string, m *Match) {
	switch {
	case m.IsZero():
		c.note(field, fault{"has no field, so that no request would match", "write at least one, like {path: /healthz}"})
	case m.Not != nil:
		c.note(field+".not", fault{"is in another not", "write the fields beside the first not"})
	default:
		c.checkMatch(field, m)
	}
}
