package guard

import (
	"fmt"

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
	if s.skips {
		if a != nil {
			s.identify(req, a, matched)
		}
		matched = s.withKeys(req, matched)
	}
	if s.grouped {
		matched = s.alternatives(matched)
	}
	return matched
}

// alternatives leaves of the rules with one group the first that is enforced. A rule in shadow does not take its place: it stays
// beside it if no other rule of the group is before it. So it reports what it would decide with mode enforce.
func (s *set) alternatives(matched []int) []int {
	var decided, shown groupSet
	kept := matched[:0]
	for _, m := range matched {
		p := &s.rules[m]
		switch {
		case p.group == 0:
		case decided.has(p.group) || p.Mode == Shadow && shown.has(p.group):
			continue
		case p.Mode == Shadow:
			shown.add(p.group)
		default:
			decided.add(p.group)
		}
		kept = append(kept, m)
	}
	return kept
}
