package config

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// checkReached finds rules that can never decide anything, because another one
// refuses all that they would refuse.
func (r *reader) checkReached(c *Config, read []bool) {
	sound := func(i int) bool { return read[i] && !r.blamed(fmt.Sprintf("rules[%d]", i)) }
	for i, by := range unreached(c.Rules, c.Independent, sound) {
		if by < 0 {
			continue
		}
		r.fault(r.find(fmt.Sprintf("rules[%d]", i)),
			fmt.Sprintf("%q never decides anything: rules[%d], %q, counts the same requests under the same key, and allows no more",
				c.Rules[i].Name, by, c.Rules[by].Name),
			"leave it out, lower its limits, or watch it with mode: shadow")
		if r.full {
			return
		}
	}
}

// maxReachSteps bounds the search for rules that others cover: a fifth of a
// second. Only files that are made for it have more to compare; there some go unfound.
const maxReachSteps = 1_000_000

// unreached gives for each rule the one because of which it never decides
// anything, or -1. It looks at those alone that are sound.
//
// Rules that count apart are never compared: a rule is looked for among those of
// its key and algorithm, at its own path and the prefixes of that, and there among
// those that ask for the same, or for less by a whole field.
func unreached(rules []guard.Rule, independent bool, sound func(int) bool) []int {
	s := search{rules: rules, independent: independent, steps: maxReachSteps, at: map[spot][]int{}, classes: map[string]int{}}
	asked := make([]spot, len(rules))
	by := make([]int, len(rules))
	for i := range rules {
		by[i] = -1
		if refuses(&rules[i]) && sound(i) {
			asked[i] = s.spotOf(&rules[i])
			s.at[asked[i]] = append(s.at[asked[i]], i)
		}
	}
	for i := range rules {
		if asked[i].class > 0 && refusesOnly(&rules[i]) {
			by[i] = s.find(i, asked[i])
		}
	}
	return by
}

// refuses reports whether whoever is over one of the rule's limits is refused.
func refuses(r *guard.Rule) bool {
	return r.Mode == guard.Enforce && r.Exceed.Action == guard.Reject && len(r.Overrides) == 0 && len(r.Policies) > 0
}

// refusesOnly reports whether the rule, if it refuses, does nothing else.
func refusesOnly(r *guard.Rule) bool { return refuses(r) && r.Soft == 0 && r.Ban.For == 0 }

// spot is where a rule stands: what it counts, and which requests.
type spot struct {
	class int // of the key, the algorithm and the cost; from 1 on
	path  string
	below bool // the path and all below it
	asked conditions
}

// conditions are the further fields of a match in one spelling; "" fits all.
type conditions struct{ methods, hosts, headers, descriptors string }

type search struct {
	rules       []guard.Rule
	independent bool
	steps       int
	at          map[spot][]int
	classes     map[string]int
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
	return spot{s.classes[class], path, below, conditions{
		methods:     spell(r.Match.Methods, func(text string) string { return text }),
		hosts:       spell(r.Match.Hosts, strings.ToLower),
		headers:     spellPairs(r.Match.Headers, http.CanonicalHeaderKey),
		descriptors: spellPairs(r.Match.Descriptors, func(text string) string { return text }),
	}}
}

// splitPath takes the path of a match apart; every path is all that is below "".
func splitPath(pattern string) (path string, below bool) {
	if pattern == "" {
		return "", true
	}
	path, below = strings.CutSuffix(pattern, "/*")
	return path, below
}

// spell gives one text for lists that mean the same.
func spell(texts []string, one func(string) string) string {
	if len(texts) == 0 {
		return ""
	}
	spelled := make([]string, len(texts))
	for i, text := range texts {
		spelled[i] = one(text)
	}
	slices.Sort(spelled)
	return fmt.Sprintf("%q", slices.Compact(spelled))
}

func spellPairs(pairs map[string]string, one func(string) string) string {
	texts := make([]string, 0, len(pairs))
	for name, value := range pairs {
		texts = append(texts, fmt.Sprintf("%q: %q", one(name), value))
	}
	return spell(texts, func(text string) string { return text })
}

// find gives a rule that covers rule i, or -1.
func (s *search) find(i int, own spot) int {
	by := -1
	for _, asked := range own.asked.wider() {
		at := spot{own.class, own.path, own.below, asked}
		if by = s.among(i, own, at); by >= 0 {
			return by
		}
		at.below = true
		for at.path = own.path; ; at.path = at.path[:strings.LastIndexByte(at.path, '/')] {
			if by = s.among(i, own, at); by >= 0 || at.path == "" {
				break
			}
		}
		if by >= 0 {
			return by
		}
	}
	return by
}

// wider gives the conditions, and those that lack some of the fields.
func (c conditions) wider() []conditions {
	all := []conditions{c}
	for _, drop := range []func(*conditions) *string{
		func(c *conditions) *string { return &c.methods },
		func(c *conditions) *string { return &c.hosts },
		func(c *conditions) *string { return &c.headers },
		func(c *conditions) *string { return &c.descriptors },
	} {
		for _, one := range all {
			if field := drop(&one); *field != "" {
				*field = ""
				all = append(all, one)
			}
		}
	}
	return all
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
			return p == q || !s.independent && covers(q, p) && (q.CountRejected || !p.CountRejected)
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
