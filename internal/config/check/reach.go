package check

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Reach finds rules that never decide anything, because another rule refuses every request
// that they would refuse. Reach compares only rules with a true entry in read, which means
// that they were read without a fault.
func Reach(rules []guard.Rule, independent bool, read []bool, blamed Blamed) []Finding {
	sound := func(i int) bool { return read[i] && !blamed(fmt.Sprintf("rules[%d]", i)) }
	var all []Finding
	for i, by := range unreached(rules, independent, sound) {
		if by < 0 {
			continue
		}
		all = append(all, Finding{
			Path: fmt.Sprintf("rules[%d]", i),
			Problem: fmt.Sprintf("%q never decides anything: rules[%d], %q, counts the same requests under the same key, and "+
				"allows no more", rules[i].Name, by, rules[by].Name),
			Fix: reachFix(rules, i, by),
		})
	}
	return all
}

// reachFix returns what to do with rule i, which rule by covers. A rule with a narrower match may be meant as an exception.
func reachFix(rules []guard.Rule, i, by int) string {
	const fix = "remove the rule, lower its limits, or set mode: shadow"
	r, other := &rules[i], &rules[by]
	switch {
	case r.Group != "" || other.Group != "" || sameMatch(&r.Rule, &other.Rule):
		return fix
	case i < by:
		return fmt.Sprintf("%s; if it is an exception to %[2]s, give both rules one group, like group: %[2]s", fix, other.Name)
	default:
		return fmt.Sprintf("%s; if it is an exception to %[2]s, put it before that rule and give both one group, like group: %[2]s",
			fix, other.Name)
	}
}

// sameMatch reports whether the matches of two rules are spelled alike.
func sameMatch(a, b *rule.Rule) bool {
	path, below := splitPath(a.Match.Path)
	otherPath, otherBelow := splitPath(b.Match.Path)
	return path == otherPath && below == otherBelow && newConditions(a, networkTexts{}) == newConditions(b, networkTexts{})
}

// maxReachSteps bounds the search to about 0.2 seconds. Beyond the bound, the search finds no
// further rules. Only a file made for that purpose reaches the bound.
const maxReachSteps = 1_500_000

// unreached returns for each rule the index of a rule that covers it, or -1. It compares only
// rules for which sound is true.
func unreached(rules []guard.Rule, independent bool, sound func(int) bool) []int {
	s := newSearch(rules, independent)
	return s.run(sound)
}

// refuses reports whether the rule refuses every request over one of its limits, and its counts depend on
// its requests alone.
func refuses(r *guard.Rule) bool {
	return r.InFlight == 0 && len(r.Count) == 0 && !r.Settles() &&
		r.Mode == guard.Enforce && r.Exceed.Action == guard.Reject && len(r.Overrides) == 0 && !r.LimitsFrom.Most.Limit.HasPeriod() &&
		len(r.Policies) > 0
}

// refusesOnly reports whether the rule refuses requests and has no other effect.
func refusesOnly(r *guard.Rule) bool { return refuses(r) && r.Soft == 0 && r.Ban.For == 0 }

// search finds rules that cover others. It compares a rule only with rules of the same key and
// algorithm, at the same path or a prefix of the path. Among those, it compares rules with the same
// match conditions or a subset of them.
type search struct {
	rules       []guard.Rule
	independent bool
	steps       int
	behind      []bool // an enforced rule of the same group is before the rule, so that it may not decide what it matches
	classes     map[string]int
	// fieldSets has a bit for each set of fields (conditions.fields) that a rule of the scope
	// matches. at has the rules of each spot.
	fieldSets map[scope]uint64
	at        map[spot][]int
	networks  networkTexts
}

// scope says what a rule counts, and on which paths.
type scope struct {
	class int // The class stands for the key, the algorithm and the cost. Classes count from 1.
	path  string
	below bool // True for the path and all paths below it.
}

// spot is a scope with the match conditions of a rule.
type spot struct {
	scope

	conditions conditions
}

func newSearch(rules []guard.Rule, independent bool) *search {
	return &search{
		rules: rules, independent: independent, steps: maxReachSteps,
		classes: map[string]int{}, fieldSets: map[scope]uint64{}, at: map[spot][]int{},
		networks: networkTexts{},
	}
}

func (s *search) run(sound func(int) bool) []int {
	spots := make([]spot, len(s.rules))
	by := make([]int, len(s.rules))
	s.behind = behind(s.rules)
	for i := range s.rules {
		by[i] = -1
		if r := &s.rules[i]; refuses(r) && sound(i) {
			at := s.spotOf(r)
			spots[i] = at
			s.at[at] = append(s.at[at], i)
			s.fieldSets[at.scope] |= 1 << at.conditions.fields()
		}
	}
	for i := range s.rules {
		if s.steps >= 0 && spots[i].class > 0 && refusesOnly(&s.rules[i]) {
			by[i] = s.find(i, spots[i])
		}
	}
	return by
}

func (s *search) spotOf(r *guard.Rule) spot {
	parts := make([]string, len(r.Key))
	for i, p := range r.Key {
		parts[i] = p.String()
	}
	slices.Sort(parts)
	asked := r.Match.ForQueries() // Other rules see no query to a decision server.
	class := fmt.Sprintf("%q %d %q %d %t", parts, r.Policies[0].Algorithm, r.CostHeader, max(r.Cost, 1), asked)
	if s.classes[class] == 0 {
		s.classes[class] = len(s.classes) + 1
	}
	path, below := splitPath(r.Match.Path)
	return spot{scope{s.classes[class], path, below}, newConditions(&r.Rule, s.networks)}
}

// splitPath splits the pattern of a match. The pattern "" matches all paths below "". A pattern with variables is a path of its own.
func splitPath(pattern string) (path string, below bool) {
	if pattern == "" {
		return "", true
	}
	if literal, marked := strings.CutPrefix(withoutMark(pattern), "="); marked {
		return literal + "\x00", false // Not the pattern of this text, and below the same paths.
	}
	if strings.HasPrefix(pattern, "re:") {
		return pattern, false
	}
	if path, below = strings.CutSuffix(pattern, "/**"); below {
		return path, true
	}
	return strings.CutSuffix(withoutMark(pattern), "/*")
}

// find returns the index of a rule that covers rule i, or -1.
func (s *search) find(i int, own spot) int {
	if by := s.amongScope(i, own, own.scope); by >= 0 {
		return by
	}
	at := own.scope
	if strings.HasPrefix(at.path, "re:") {
		at.path = "" // No prefix is known to contain an expression.
	}
	for at.below = true; s.steps >= 0; at.path = at.path[:strings.LastIndexByte(at.path, '/')] {
		if by := s.amongScope(i, own, at); by >= 0 || at.path == "" {
			return by
		}
	}
	return -1
}

// amongScope compares rule i with the rules of a scope that have no further conditions.
func (s *search) amongScope(i int, own spot, at scope) int {
	s.steps--
	fields := own.conditions.fields()
	for fieldSets := s.fieldSets[at]; fieldSets != 0; fieldSets &= fieldSets - 1 {
		some := uint8(bits.TrailingZeros64(fieldSets))
		if some&^fields != 0 {
			continue
		}
		s.steps--
		if by := s.among(i, own, spot{at, own.conditions.only(some)}); by >= 0 {
			return by
		}
	}
	return -1
}

// among returns the rule at a spot that covers rule i, or -1. own is the spot of rule i. If two
// rules cover each other, only the second counts as covered.
func (s *search) among(i int, own, at spot) int {
	for _, j := range s.at[at] {
		if s.steps--; s.steps < 0 {
			return -1
		}
		if j == i || s.behind[j] || s.independent && s.behind[i] || !s.covered(&s.rules[i], &s.rules[j], own == at) {
			continue
		}
		if j < i || own != at || s.behind[i] || !refusesOnly(&s.rules[j]) || !s.covered(&s.rules[j], &s.rules[i], true) {
			return j
		}
	}
	return -1
}

// covered reports whether other refuses each request that r refuses. The caller makes sure that
// other counts every request that r counts.
//
// If one rule refuses, all-or-nothing rules do not count the request, but independent rules do.
// Therefore an independent rule is covered only by an equal rule.
func (s *search) covered(r, other *guard.Rule, alike bool) bool {
	if r.Group != "" && r.Group == other.Group || // At most one of them decides.
		r.Missing != other.Missing || // They differ for requests without a part of the key.
		other.Fallback == guard.FallbackAllow && r.Fallback == guard.FallbackDeny ||
		r.CostHeader != "" && mostCost(other) > mostCost(r) {
		return false
	}
	if s.independent && (!alike || other.Ban.For > 0 || len(r.Policies) != len(other.Policies)) {
		return false
	}
	for _, p := range r.Policies {
		found := slices.ContainsFunc(other.Policies, func(q headgate.Policy) bool {
			s.steps--
			return p == q || !s.independent && Covers(q, p) && (q.CountRejected || !p.CountRejected)
		})
		if !found {
			return false
		}
	}
	return true
}

// behind reports for each rule whether an enforced rule of its group is before it.
func behind(rules []guard.Rule) []bool {
	all, decided := make([]bool, len(rules)), map[string]bool{}
	for i := range rules {
		if r := &rules[i]; r.Group != "" {
			all[i] = decided[r.Group]
			decided[r.Group] = decided[r.Group] || r.Mode == guard.Enforce
		}
	}
	return all
}

func mostCost(r *guard.Rule) int64 {
	if r.MaxCost == 0 {
		return headgate.MaxUnits
	}
	return r.MaxCost
}
