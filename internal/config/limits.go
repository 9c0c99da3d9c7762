package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/rule"
)

// maxLimits bounds the limits of one rule. Each limit adds a state to every key, and takes time
// for every request.
const maxLimits = 16

// defaultSubWindows makes a sliding window's state fill one cache line.
const defaultSubWindows = 4

const (
	limitsExample = `["500/2s"]`
	limitsFix     = "write how many units per time, like limits: " + limitsExample
)

// shape has the settings that all limits of one rule share, including those of its overrides.
type shape struct {
	// policy has no count, period and burst yet.
	policy headgate.Policy
	// known is false if the algorithm, or a field that depends on it, is at fault. Then limits
	// are read but not checked.
	known bool
}

// limits are the policies of a list of limits, and the value of each.
type limits struct {
	policies []headgate.Policy
	values   []value
}

// shape reads how the rule counts units.
func (s *section) shape() shape {
	var sh shape
	known := s.algorithm(&sh.policy.Algorithm)
	subWindows := int64(defaultSubWindows)
	s.number(s.declare("sub_windows", field.Taken, "Counters for one period of a sliding window."), &subWindows, 1, limit.MaxSubWindows)
	s.boolean(s.declare("count_rejected", field.Taken, "true counts refused attempts too."), &sh.policy.CountRejected)
	if known {
		s.checkUsed(sh.policy.Algorithm, "sub_windows", "count_rejected")
	}
	if sh.policy.Algorithm == headgate.SlidingWindow {
		sh.policy.SubWindows = int(subWindows)
	}
	sh.known = known && !s.blamedAny("sub_windows", "count_rejected")
	return sh
}

// algorithmChoices are the words of algorithms, and what other programs call them.
func algorithmChoices(algorithms []headgate.Algorithm) (choices []choice[headgate.Algorithm]) {
	for _, a := range algorithms {
		choices = append(choices, choice[headgate.Algorithm]{word: a.String(), value: a})
	}
	for _, a := range headgate.Algorithms() {
		if word := limit.TraitsOf(a).Synonym; word != "" {
			choices = append(choices, choice[headgate.Algorithm]{word: word, known: a.String()})
		}
	}
	return choices
}

// algorithm reads the algorithm. It reports false if the field is at fault.
func (s *section) algorithm(into *headgate.Algorithm) bool {
	oneOf(s, s.declare("algorithm", field.Taken, "Algorithm that counts the units."), into, algorithmChoices(headgate.Algorithms()))
	return !s.blamed(s.pathOf("algorithm"))
}

func (s *section) blamedAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return s.blamed(s.pathOf(name)) })
}

// checkUsed finds fields that the rule's algorithm does not use.
func (s *section) checkUsed(a headgate.Algorithm, fields ...string) {
	for _, name := range fields {
		by := limit.UsedBy(name)
		if s.outline != nil {
			s.outline.restrict(name, "algorithm", wordsOf(by)...)
		}
		if s.has(name) && !slices.Contains(by, a) && !s.blamed(s.pathOf(name)) {
			s.fault(s.keyOf(name), "is not used by "+a.String(), "remove it, or use "+words(by))
		}
	}
}

// words lists algorithms for the text of a fix.
func words(algorithms []headgate.Algorithm) string { return strings.Join(wordsOf(algorithms), " or ") }

func wordsOf(algorithms []headgate.Algorithm) []string {
	texts := make([]string, len(algorithms))
	for i, a := range algorithms {
		texts[i] = a.String()
	}
	return texts
}

// limits reads the limits of a rule or of an override. It returns no limits if the shape is at fault.
func (s *section) limits(sh shape) limits {
	s.declare("limits", field.Taken, "Units per time, like 500/2s; a request must pass every limit.")
	s.outline.field("limits").entries().written("", limitPattern)
	entries, _ := s.scalars("limits", limitsExample, maxLimits)
	var burst int64
	s.number(s.declare("burst", field.Taken, "Units that may pass at once, or the length of a leaky bucket's queue. Default: the "+
		"limit's count."), &burst, 1, headgate.MaxUnits)
	if sh.known {
		s.checkUsed(sh.policy.Algorithm, "burst")
	}
	var l limits
	for _, v := range entries {
		p := sh.policy
		if s.limit(v, &p.Limit) {
			p.Limit.Burst = burst
			l.policies, l.values = append(l.policies, p), append(l.values, v)
		}
	}
	if !sh.known || s.blamedAny("burst") {
		return limits{}
	}
	s.compile(l)
	s.checkWindows(l)
	return l
}

// limit reads one limit, like 500/2s.
func (r *reader) limit(v value, into *headgate.Limit) bool {
	parsed, err := rule.ParseLimit(v.text())
	if err != nil {
		r.parseFault(v, err)
		return false
	}
	*into = parsed
	return true
}

// oneLimit reads a field with a single limit, counted as p says. It returns no limits if
// the field is at fault.
func (s *section) oneLimit(v value, p headgate.Policy) limits {
	if !s.limit(v, &p.Limit) {
		return limits{}
	}
	l := limits{[]headgate.Policy{p}, []value{v}}
	s.compile(l)
	if s.blamed(v.path) {
		return limits{}
	}
	return l
}

// compile checks each policy with package limit.
func (s *section) compile(l limits) {
	for i, p := range l.policies {
		_, err := limit.Compile(p)
		if err == nil {
			continue
		}
		s.policyFault(l.values[i], err)
	}
}

// policyFault notes the fault of a policy at the field that err names, or at v.
func (s *section) policyFault(v value, err error) {
	bad, found := errortype.As[*limit.PolicyError](err)
	switch {
	case !found:
		s.fault(v, err.Error(), "use another limit")
	case bad.Field == "period":
		s.faultAt(v, strings.IndexByte(v.text(), '/')+1, bad.Field+" "+bad.Problem, bad.Fix)
	case bad.Field == "ban_for":
		s.fault(s.find(s.pathOf("ban.for")), bad.Problem, bad.Fix)
	case s.has(bad.Field):
		if path := s.pathOf(bad.Field); !s.blamed(path) {
			s.fault(s.find(path), bad.Problem, bad.Fix)
		}
	default:
		s.fault(v, bad.Field+" "+bad.Problem, bad.Fix)
	}
}

// checkWindows finds limits that never decide anything because of another limit of the same rule.
func (s *section) checkWindows(l limits) {
	for i, p := range l.policies {
		for j, other := range l.policies {
			switch {
			case i > j && p.Limit.Period() == other.Limit.Period():
				s.fault(l.values[i], fmt.Sprintf("the period %s appears twice", p.Limit.Period()), "remove the higher limit")
			case i != j && p.Limit.Period() != other.Limit.Period() && check.Covers(other, p):
				s.fault(l.values[i],
					fmt.Sprintf("%s is never reached: %s allows no more in a longer period", p.Limit, other.Limit), "remove it")
			}
		}
	}
}
