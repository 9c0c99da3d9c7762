package check

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Reach finds rules that never decide anything, because another rule refuses every request
// that they would refuse. read tells which rules were read without a fault; Reach compares only these.
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
			Fix: "leave it out, lower its limits, or watch it with mode: shadow",
		})
	}
	return all
}

// maxReachSteps bounds the search for rules that others cover, to a fifth of a second
// or so. Only files that are made for it have more to compare; there some go unfound.
const maxReachSteps = 1_500_000

// unreached gives for each rule the one because of which it never decides
// anything, or -1. It looks at those alone that are sound.
func unreached(rules []guard.Rule, independent bool, sound func(int) bool) []int {
	s := newSearch(rules, independent)
	return s.run(sound)
}

// refuses reports whether whoever is over one of the rule's limits is refused.
func refuses(r *guard.Rule) bool {
	return r.Mode == guard.Enforce && r.Exceed.Action == guard.Reject && len(r.Overrides) == 0 && len(r.Policies) > 0
}

// refusesOnly reports whether the rule, if it refuses, does nothing else.
func refusesOnly(r *guard.Rule) bool { return refuses(r) && r.Soft == 0 && r.Ban.For == 0 }

// search finds rules that cover others. Rules that count apart are never compared:
// a rule is looked for among those of its key and algorithm, at its own path and
// the prefixes of that, and there among those that ask for the same, or for less by
// a whole field.
type search struct {
	rules       []guard.Rule
	independent bool
	steps       int
	classes     map[string]int
	// asked are the sets of fields (conditions.fields) that rules of a scope ask for,
	// as a set of bits; at are the rules.
	asked map[scope]uint16
	at    map[spot][]int
}

// scope is what a rule counts, and on which paths.
type scope struct {
	class int // of the key, the algorithm and the cost; from 1 on
	path  string
	below bool // the path and all below it
}

// spot is a scope, and which requests of it.
type spot struct {
	scope

	conditions conditions
}

func newSearch(rules []guard.Rule, independent bool) *search {
	return &search{
		rules: rules, independent: independent, steps: maxReachSteps,
		classes: map[string]int{}, asked: map[scope]uint16{}, at: map[spot][]int{},
	}
}

func (s *search) run(sound func(int) bool) []int {
	spots := make([]spot, len(s.rules))
	by := make([]int, len(s.rules))
	for i := range s.rules {
		by[i] = -1
		if r := &s.rules[i]; refuses(r) && sound(i) {
			at := s.spotOf(r)
			spots[i] = at
			s.at[at] = append(s.at[at], i)
			s.asked[at.scope] |= 1 << at.conditions.fields()
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
	class := fmt.Sprintf("%q %d %q %d", parts, r.Policies[0].Algorithm, r.CostHeader, max(r.Cost, 1))
	if s.classes[class] == 0 {
		s.classes[class] = len(s.classes) + 1
	}
	path, below := splitPath(r.Match.Path)
	return spot{scope{s.classes[class], path, below}, newConditions(&r.Match)}
}

// splitPath takes the path of a match apart; every path is all that is below "".
func splitPath(pattern string) (path string, below bool) {
	if pattern == "" {
		return "", true
	}
	path, below = strings.CutSuffix(pattern, "/*")
	return path, below
}

// find gives a rule that covers rule i, or -1.
func (s *search) find(i int, own spot) int {
	if by := s.amongScope(i, own, own.scope); by >= 0 {
		return by
	}
	at := own.scope
	for at.below = true; s.steps >= 0; at.path = at.path[:strings.LastIndexByte(at.path, '/')] {
		if by := s.amongScope(i, own, at); by >= 0 || at.path == "" {
			return by
		}
	}
	return -1
}

// amongScope looks at the rules of a scope that ask for no more than rule i does.
func (s *search) amongScope(i int, own spot, at scope) int {
	s.steps--
	fields := own.conditions.fields()
	for asked := s.asked[at]; asked != 0; asked &= asked - 1 {
		some := uint8(bits.TrailingZeros16(asked))
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

// among gives the rule at a spot that covers rule i, which stands at own. Of two
// that cover each other the first stays.
func (s *search) among(i int, own, at spot) int {
	for _, j := range s.at[at] {
		if s.steps--; s.steps < 0 {
			return -1
		}
		if j == i || !s.covered(&s.rules[i], &s.rules[j], own == at) {
			continue
		}
		if j < i || own != at || !refusesOnly(&s.rules[j]) || !s.covered(&s.rules[j], &s.rules[i], true) {
			return j
		}
	}
	return -1
}

// covered reports whether whatever r refuses is refused by other too, which counts
// at least what r counts.
//
// Of rules that are all or nothing, what one refuses the others do not count.
// Independent rules count what others refuse: there it takes equal rules.
func (s *search) covered(r, other *guard.Rule, alike bool) bool {
	if other.Fallback == guard.FallbackAllow && r.Fallback == guard.FallbackDeny ||
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

func mostCost(r *guard.Rule) int64 {
	if r.MaxCost == 0 {
		return headgate.MaxUnits
	}
	return r.MaxCost
}
