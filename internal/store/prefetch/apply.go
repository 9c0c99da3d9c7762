package prefetch

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
)

// Apply implements headgate.Store. Some groups are decided here. All others go to the source
// in one call.
func (s *Store) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	if len(ops) == 1 {
		return s.Take(ctx, &ops[0], &decisions[0])
	}
	err := s.apply(ctx, ops, decisions[:len(ops)], false)
	if err != nil && !compensate.IsOutside(err) {
		compensate.Undecide(decisions[:len(ops)])
	}
	return err
}

func (s *Store) apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision, noted bool) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	c, ok := s.calls.Get().(*call)
	if !ok {
		c = new(call)
	}
	defer s.end(c)
	if err := c.split(s, ops, decisions); err != nil {
		return err
	}
	for i := range c.groups {
		c.groups[i].noted = noted
		s.begin(&c.groups[i])
	}
	outside := s.applyAtSource(ctx, c)
	if outside != nil && !compensate.IsOutside(outside) {
		return outside
	}
	for i := range c.groups { // No flight has windows of the calendar.
		if err := s.await(ctx, &c.groups[i]); err != nil {
			return err
		}
	}
	if err := s.applyAtSource(ctx, c); err != nil {
		return err
	}
	return outside
}

// end ends a call: groups that still wait for a flight stop waiting.
func (s *Store) end(c *call) {
	for i := range c.groups {
		g := &c.groups[i]
		s.leave(g)
		g.ops, g.decisions = nil, nil
		clear(g.policies)
		clear(g.parts)
	}
	clear(c.ops)
	s.calls.Put(c)
}

// begin decides a group here if possible, and otherwise sets what the group needs.
func (s *Store) begin(g *group) {
	switch {
	case g.corrects():
		if g.ops[0].Kind == headgate.Refund {
			s.voidReceipts(&g.ops[0])
		}
		g.state = direct
	case g.stash:
		s.round(g)
	case s.refuse(g):
		g.state = decided
	default:
		g.state = direct
	}
}

// applyAtSource has the source decide all remaining groups in one call.
func (s *Store) applyAtSource(ctx context.Context, c *call) error {
	c.ops = c.ops[:0]
	groups := uint8(0)
	for i := range c.groups {
		if g := &c.groups[i]; g.state == direct {
			groups++
			for j, op := range g.ops {
				op.Policy, op.Group = g.policies[j].source, groups%2
				c.ops = append(c.ops, op)
			}
		}
	}
	if groups == 0 && len(c.ops) == 0 {
		return nil
	}
	for len(c.decisions) < len(c.ops) {
		c.decisions = append(c.decisions, headgate.Decision{})
	}
	m0 := s.now()
	err := s.source.Apply(ctx, c.ops, c.decisions)
	if err == nil || compensate.IsOutside(err) {
		s.tell(c, m0, s.now())
	}
	return err
}

// tell copies the decisions of the source into the groups. After an EdgeError, a group can be undecided.
func (s *Store) tell(c *call, m0, m1 time.Duration) {
	decisions := c.decisions
	for i := range c.groups {
		g := &c.groups[i]
		if g.state != direct {
			continue
		}
		s.counts.asked.Add(1)
		copy(g.decisions, decisions)
		decisions = decisions[len(g.ops):]
		g.state = decided
		if g.decisions[0] == headgate.Undecided() {
			continue
		}
		for j := range g.ops {
			if p := g.policies[j]; p.stashes {
				g.decisions[j].Limit = p.room
			}
		}
		if g.corrects() {
			s.forgetRefusals(s.hash(g.ops[0].Key))
		}
		s.record(g, g.decisions, m0, m1)
		s.mark(g)
	}
}
