package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/rule"
)

// maxLimits bounds the limits of one rule: each is one more state for every key,
// and all of them are looked at for every request.
const maxLimits = 16

// defaultSubWindows makes a sliding window's state fill one cache line.
const defaultSubWindows = 4

// limits are the limits of one rule, and where each is written.
type limits struct {
	policies []headgate.Policy
	values   []value
}

// limits reads how the rule's units are counted, and against what.
func (s *section) limits() limits {
	s.required("limits", `write how much per time, like limits: ["500/2s"]`)
	var shape headgate.Policy
	known := s.algorithm(&shape.Algorithm)
	var burst, subWindows int64
	s.number("burst", &burst, 1, headgate.MaxUnits)
	s.number("sub_windows", &subWindows, 1, limit.MaxSubWindows)
	s.boolean("count_rejected", &shape.CountRejected)
	s.later("soft", "leave it out, and watch the RateLimit fields of the responses")
	entries, _ := s.scalars("limits", `["500/2s"]`, maxLimits)
	if known {
		s.checkUsed(shape.Algorithm)
	}
	shape.Limit.Burst, shape.SubWindows = burst, int(subWindows)
	if shape.Algorithm == headgate.SlidingWindow && subWindows == 0 {
		shape.SubWindows = defaultSubWindows
	}
	var l limits
	for _, v := range entries {
		parsed, err := rule.ParseLimit(v.text())
		if err != nil {
			s.parseFault(v, err)
			continue
		}
		p := shape
		p.Limit.Count, p.Limit.Per = parsed.Count, parsed.Per
		l.policies, l.values = append(l.policies, p), append(l.values, v)
	}
	if !known || s.blamedAny("burst", "sub_windows", "count_rejected") {
		return limits{}
	}
	s.compile(l)
	s.checkWindows(l)
	return l
}

// algorithm reports false when it is at fault, so that what uses it is not judged.
func (s *section) algorithm(into *headgate.Algorithm) bool {
	var choices []choice[headgate.Algorithm]
	for _, a := range headgate.Algorithms() {
		choices = append(choices, choice[headgate.Algorithm]{word: a.String(), value: a})
	}
	oneOf(s, "algorithm", into, choices)
	return !s.blamed(s.pathOf("algorithm"))
}

func (s *section) blamedAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return s.blamed(s.pathOf(name)) })
}

// usedByTable says which algorithms use a field. What a field of another
// algorithm was meant to do, nobody can tell: it is a fault.
var usedByTable = [...]struct {
	field      string
	algorithms []headgate.Algorithm
}{
	{"burst", []headgate.Algorithm{headgate.TokenBucket, headgate.LeakyBucket}},
	{"sub_windows", []headgate.Algorithm{headgate.SlidingWindow}},
	{"count_rejected", []headgate.Algorithm{headgate.FixedWindow, headgate.SlidingLog, headgate.SlidingWindow}},
}

func (s *section) checkUsed(a headgate.Algorithm) {
	for _, used := range usedByTable {
		if !s.has(used.field) || slices.Contains(used.algorithms, a) || s.blamed(s.pathOf(used.field)) {
			continue
		}
		var words []string
		for _, by := range used.algorithms {
			words = append(words, by.String())
		}
		s.fault(s.keyOf(used.field), "is not used by "+a.String(), "leave it out, or use "+strings.Join(words, " or "))
	}
}

// compile lets package limit check each policy, and points at the field that it names.
func (s *section) compile(l limits) {
	for i, p := range l.policies {
		_, err := limit.Compile(p)
		if err == nil {
			continue
		}
		bad, found := errors.AsType[*limit.PolicyError](err)
		switch {
		case !found:
			s.fault(l.values[i], err.Error(), "use another limit")
		case bad.Field == "period":
			s.faultAt(l.values[i], strings.IndexByte(l.values[i].text(), '/')+1, bad.Field+" "+bad.Problem, bad.Fix)
		case s.has(bad.Field):
			if path := s.pathOf(bad.Field); !s.blamed(path) {
				s.fault(s.find(path), bad.Problem, bad.Fix)
			}
		default:
			s.fault(l.values[i], bad.Field+" "+bad.Problem, bad.Fix)
		}
	}
}

// checkWindows finds limits that can never decide anything because of another
// limit of the same rule.
func (s *section) checkWindows(l limits) {
	for i, p := range l.policies {
		for j, other := range l.policies {
			switch {
			case i > j && p.Limit.Per == other.Limit.Per:
				s.fault(l.values[i], fmt.Sprintf("the period %s stands twice", p.Limit.Period()), "leave the greater limit out")
			case i != j && p.Limit.Per != other.Limit.Per && covers(other, p):
				s.fault(l.values[i],
					fmt.Sprintf("%s is never reached: %s allows no more in a longer time", p.Limit, other.Limit), "leave it out")
			}
		}
	}
}

// covers reports whether a request that passes wide surely passes narrow: not
// more units over a longer period. Where windows stand against each other as they
// please, the longer one must hold the shorter one whole.
func covers(wide, narrow headgate.Policy) bool {
	w, n := wide.Limit, narrow.Limit
	if w.Count > n.Count || w.Per < n.Per || n.Count == 0 {
		return false
	}
	switch wide.Algorithm {
	case headgate.FixedWindow:
		return w.Per%n.Per == 0
	case headgate.SlidingWindow:
		return w.Per/2 >= n.Per
	default:
		return true
	}
}

// cost reads what a request takes.
func (s *section) cost(r *guard.Rule, l limits) {
	s.later("max_cost", "leave it out: it belongs to a cost from a header")
	v, ok := s.scalar("cost", "a number")
	if !ok {
		return
	}
	if strings.HasPrefix(v.text(), "header:") {
		s.fault(v, "a cost from a header is not supported yet", "use a number")
		return
	}
	if !s.wholeNumber(v, &r.Cost, 1, headgate.MaxUnits) {
		return
	}
	for _, p := range l.policies {
		if room := limit.Room(p); room > 0 && r.Cost > room {
			s.fault(v, fmt.Sprintf("%d is more than %s ever admits at once, which is %d", r.Cost, p.Limit, room),
				fmt.Sprintf("use at most %d, or raise the limit", room))
			return
		}
	}
}

// checkPolicyNames finds names that callers could not tell apart: a rule of
// several limits calls them by its name and their periods.
func (r *reader) checkPolicyNames(rules []guard.Rule) {
	numbers := make(map[string]int, len(rules))
	for i := range rules {
		numbers[rules[i].Name] = i
	}
	for i := range rules {
		if len(rules[i].Policies) < 2 {
			continue
		}
		for _, p := range rules[i].Policies {
			name := rules[i].Name + "-" + p.Limit.Period()
			if other, taken := numbers[name]; taken {
				r.fault(r.find(fmt.Sprintf("rules[%d].name", other)),
					fmt.Sprintf("%q is what callers see of rules[%d]'s limit %s", name, i, p.Limit), "use another name")
			}
		}
	}
}
