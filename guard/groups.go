package guard

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate"
)

// MaxGroups bounds the groups of rules of a Config: a decision has a bit for each on its stack.
const MaxGroups = 1024

// groupSet has a bit for each group.
type groupSet [MaxGroups/64 + 1]uint64

func (g *groupSet) has(group int) bool { return g[group/64]&(1<<(group%64)) != 0 }
func (g *groupSet) add(group int)      { g[group/64] |= 1 << (group % 64) }

// numberGroups numbers the groups of the rules, from 1 on.
func (s *set) numberGroups() error {
	numbers := map[string]int{}
	for i := range s.rules {
		p := &s.rules[i]
		if p.Group == "" {
			continue
		}
		n, known := numbers[p.Group]
		if !known {
			if n = len(numbers) + 1; n > MaxGroups {
				return fmt.Errorf("guard: rule %q: its group %.80q is one of more than %d: use fewer groups", p.Name, p.Group, MaxGroups)
			}
			numbers[p.Group] = n
		}
		p.group = n
		s.parted = s.parted || p.part != nil
	}
	s.grouped = len(numbers) > 0
	return nil
}

// match finds the rules that decide on a request, in the order of the rules.
// a may be nil if the facts about the sender are not needed.
func (s *set) match(req *headgate.Request, a *Answer, into []int) []int {
	matched := s.exemptProbe(req, s.index.Match(req, into))
	if req.Preflight {
		matched = s.exemptPreflight(req, matched)
	}
	if (s.skips || s.parted) && a != nil {
		s.identify(req, a, matched)
	}
	if s.skips {
		matched = s.withKeys(req, matched)
	}
	if s.grouped {
		matched = s.alternatives(req, a, matched)
	}
	return matched
}

// triesLast reports whether the last of the kept rules, but for trials, is the rule of a trial.
func (s *set) triesLast(p *prepared, kept []int) bool {
	for _, m := range slices.Backward(kept) {
		if last := &s.rules[m]; last.TrialOf == "" {
			return last.Name == p.TrialOf
		}
	}
	return false
}

// alternatives leaves of the rules with one group the first that is enforced. A rule in shadow does not take its place, also if only the
// key of the request is in shadow: it stays beside it if no other rule of the group is before it. So it reports what it would decide
// with mode enforce. Without an Answer, a rule that is enforced for a part of the keys counts as enforced.
func (s *set) alternatives(req *headgate.Request, a *Answer, matched []int) []int {
	var decided, shown groupSet
	kept := matched[:0]
	for _, m := range matched {
		p := &s.rules[m]
		if p.group == 0 || p.TrialOf != "" {
			if p.group == 0 || s.triesLast(p, kept) {
				kept = append(kept, m)
			}
			continue
		}
		shadow := p.Mode == Shadow || p.part != nil && a != nil && p.part.of(p, req, a) != p
		switch {
		case decided.has(p.group) || shadow && shown.has(p.group):
			continue
		case shadow:
			shown.add(p.group)
		default:
			decided.add(p.group)
		}
		kept = append(kept, m)
	}
	return kept
}
