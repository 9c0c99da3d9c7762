package memcached

import (
	"bytes"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// group is one group of Ops, divided into parts of one key each.
type group struct {
	parts []*part
	// never: one of the Ops can never pass.
	never bool
	// decisions are the caller's, for this group.
	decisions []headgate.Decision
}

// groupsOf checks all Ops, so that an invalid one takes nothing, and sorts them into groups.
func (s *Store) groupsOf(ops []headgate.Op, decisions []headgate.Decision) ([]group, error) {
	var groups []group
	for len(ops) > 0 {
		n := 1
		for n < len(ops) && ops[n].Group == ops[0].Group {
			n++
		}
		g := group{decisions: decisions[:n:n]}
		for i := range ops[:n] {
			if err := s.enter(&g, &ops[i], i); err != nil {
				return nil, err
			}
		}
		if err := limit.CheckGroup(ops[:n]); err != nil {
			return nil, err
		}
		for _, p := range g.parts {
			p.refused, p.never = g.never, g.never
		}
		// All processes use the same order of keys, so that two groups on the same keys do not take
		// each other's last units.
		slices.SortStableFunc(g.parts, func(a, b *part) int { return bytes.Compare(a.key[:], b.key[:]) })
		groups = append(groups, g)
		ops, decisions = ops[n:], decisions[n:]
	}
	return groups, nil
}

// enter adds an Op to the part of its key.
func (s *Store) enter(g *group, op *headgate.Op, place int) error {
	policy := s.policies.GetToUse(op.Policy)
	if policy == nil {
		return headgate.ErrUnknownPolicy
	}
	plan := &policy.Plan
	if op.Cost < 0 || op.Cost > headgate.MaxUnits {
		return headgate.ErrBadCost
	}
	if err := limit.CheckKind(plan.Policy.Algorithm, op.Kind); err != nil {
		return err
	}
	d := digestOf(op.Key)
	if g.has(d, op.Window) {
		return errSameState
	}
	p := g.part(d, s.counted(&plan.Policy))
	p.nonce = s.nonce
	p.turns = append(p.turns, turn{
		plan: plan, id: op.Policy, window: op.Window, mode: op.Kind, cost: op.Cost, draw: limit.Draw{Edges: op.Edges},
	})
	p.decisions = append(p.decisions, headgate.Decision{})
	p.places = append(p.places, place)
	g.never = g.never || plan.Policy.Algorithm != headgate.Ban && !limit.Corrects(op.Kind) && op.Cost > limit.Room(plan.Policy)
	return nil
}

// has reports whether the group already has an Op of this key and window.
func (g *group) has(d digest, window uint8) bool {
	for _, p := range g.parts {
		for i := range p.turns {
			if p.key == d && p.turns[i].window == window {
				return true
			}
		}
	}
	return false
}

// part gives the group's part of a key. A counter is a separate part.
func (g *group) part(d digest, counter bool) *part {
	for _, p := range g.parts {
		if p.key == d && !counter && !p.counter {
			return p
		}
	}
	p := &part{key: d, counter: counter}
	p.turns, p.decisions, p.places = p.lone.turn[:0], p.lone.decision[:0], p.lone.place[:0]
	g.parts = append(g.parts, p)
	return p
}

// shareKeys reports whether a key is in two groups.
func shareKeys(groups []group) bool {
	in := map[digest]int{}
	for i := range groups {
		for _, p := range groups[i].parts {
			if before, ok := in[p.key]; ok && before != i {
				return true
			}
			in[p.key] = i
		}
	}
	return false
}
