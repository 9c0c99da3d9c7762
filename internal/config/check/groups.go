package check

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Groups finds groups of one rule, and rules that never decide anything because a rule before them in their group matches
// the same requests. more says that a source may have further rules. Groups compares only rules with a true entry in read.
func Groups(rules []guard.Rule, more bool, read []bool, blamed Blamed) []Finding {
	found := &findings{known: blamed}
	rulesOf := map[string]int{}
	for i := range rules {
		rulesOf[rules[i].Group]++
	}
	delete(rulesOf, "")
	if len(rulesOf) > guard.MaxGroups {
		found.add("rules", fmt.Sprintf("the rules have %d groups", len(rulesOf)), fmt.Sprintf("use at most %d", guard.MaxGroups))
	}
	names := make([]string, 0, len(rulesOf))
	for name, n := range rulesOf {
		if n > 1 {
			names = append(names, name)
		}
	}
	before := newEarlier()
	for i := range rules {
		r, path := &rules[i], fmt.Sprintf("rules[%d]", i)
		switch {
		case r.Group == "" || !read[i] || found.blamed(path):
		case rulesOf[r.Group] == 1 && !more:
			fix := "give the rules that it is an alternative to this group too, or remove the field"
			if near := rule.Nearest(r.Group, names); near != "" {
				fix = "did you mean " + near + "?"
			}
			found.add(path+".group", fmt.Sprintf("%q has no other rule, so it has no effect", r.Group), fix)
		case r.Mode == guard.Off:
		default:
			before.check(found, rules, i)
		}
	}
	return found.all
}

// earlier finds, for a rule of a group, a rule before it that matches all its requests. It has the first rule of each
// place, and for each group and path a bit for each set of fields (conditions.fields) that a rule matches.
type earlier struct {
	first     map[groupPlace]int
	fieldSets map[groupPath]uint64
	steps     int
	networks  networkTexts
}

// groupPath is the path of a match in a group. shadow is set for rules that are not enforced.
type groupPath struct {
	group         string
	shadow, asked bool // asked: the match is for queries
	path          string
	below         bool
}

// groupPlace is a whole match in a group.
type groupPlace struct {
	groupPath

	conditions conditions
}

func newEarlier() *earlier {
	return &earlier{first: map[groupPlace]int{}, fieldSets: map[groupPath]uint64{}, steps: maxReachSteps, networks: networkTexts{}}
}

// check notes a finding if rule i never decides anything, and adds the rule.
func (e *earlier) check(found *findings, rules []guard.Rule, i int) {
	r := &rules[i]
	path, below := splitPath(r.Match.Path)
	own := groupPlace{groupPath{r.Group, r.Mode == guard.Shadow, r.Match.ForQueries(), path, below}, newConditions(&r.Rule, e.networks)}
	by := e.covering(own)
	if by < 0 && own.shadow { // An enforced rule decides, and a rule in shadow reports alone.
		enforced := own
		enforced.shadow = false
		by = e.covering(enforced)
	}
	if by >= 0 {
		fix := "put it before the other rule, or remove it"
		if sameMatch(&rules[by].Rule, &r.Rule) {
			fix = "remove one of the two, or change its match"
		}
		problem := fmt.Sprintf("%q never decides anything: rules[%d], %q, is before it in group %q and matches the same requests",
			r.Name, by, rules[by].Name, r.Group)
		found.add(fmt.Sprintf("rules[%d]", i), problem, fix)
		return
	}
	if r.Missing == rule.MissingSkip && slices.ContainsFunc(r.Key, rule.Part.Optional) {
		return // Requests without a part of its key are left to the rules after it.
	}
	if _, known := e.first[own]; !known {
		e.first[own] = i
		e.fieldSets[own.groupPath] |= 1 << own.conditions.fields()
	}
}

// covering returns the first rule at the path of a match, or at a prefix of it, that has no further conditions; or -1.
func (e *earlier) covering(own groupPlace) int {
	best := e.at(own, own.groupPath)
	at := own.groupPath
	for at.below = true; e.steps >= 0; at.path = at.path[:strings.LastIndexByte(at.path, '/')] {
		if by := e.at(own, at); by >= 0 && (best < 0 || by < best) {
			best = by
		}
		if at.path == "" {
			return best
		}
	}
	return best
}

func (e *earlier) at(own groupPlace, at groupPath) int {
	e.steps--
	fields, best := own.conditions.fields(), -1
	for sets := e.fieldSets[at]; sets != 0; sets &= sets - 1 {
		some := uint8(bits.TrailingZeros64(sets))
		if e.steps--; some&^fields != 0 {
			continue
		}
		if by, known := e.first[groupPlace{at, own.conditions.only(some)}]; known && (best < 0 || by < best) {
			best = by
		}
	}
	return best
}
