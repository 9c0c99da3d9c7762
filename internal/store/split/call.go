package split

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/compensate"
	"github.com/headgate/headgate/internal/store/prefetch"
)

// call is the working memory of one round of queries. Calls are pooled.
type call struct {
	// ops are the caller's Ops, with the kinds of this round. policies has the policy of each.
	ops      []headgate.Op
	policies []*policy
	mixed    []mixed
	parts    [2]part // by side
	// beside runs the part of perSecond. A func that was made once starts a goroutine without an
	// allocation.
	beside func()
	done   chan struct{}
}

// mixed is a group with Ops in both stores: ops[from:to].
type mixed struct {
	from, to int
	// looks: this round counts nothing. A second round counts the Ops that must count.
	looks bool
}

// part has the Ops of one store.
type part struct {
	store     prefetch.Source
	ctx       context.Context //nolint:containedctx // It belongs to the goroutine of the part, and is nil between calls.
	ops       []headgate.Op
	least     []int64 // empty for Apply
	decisions []headgate.Decision
	places    []int // of the Ops, among those of the caller
	group     uint8 // of the latest group
	err       error
}

func (s *Store) newCall() *call {
	if c, ok := s.calls.Get().(*call); ok {
		return c
	}
	c := &call{done: make(chan struct{}, 1)}
	for i := range c.parts {
		c.parts[i].store = s.stores[i]
	}
	c.beside = func() {
		c.parts[perSecond].run()
		c.done <- struct{}{}
	}
	return c
}

// end puts a call into the pool, without the caller's keys.
func (s *Store) end(c *call) {
	for i := range c.parts {
		p := &c.parts[i]
		clear(p.ops)
		p.ops, p.least, p.places, p.ctx, p.err = p.ops[:0], p.least[:0], p.places[:0], nil, nil
	}
	clear(c.ops)
	clear(c.policies)
	c.ops, c.policies, c.mixed = c.ops[:0], c.policies[:0], c.mixed[:0]
	s.calls.Put(c)
}

// divide adds the Ops to the parts, after a check of all of them: an error takes nothing. With
// looks, mixed groups of TakeIfAll count nothing in this round.
func (c *call) divide(s *Store, ops []headgate.Op, least []int64, looks bool) error {
	for i := range ops {
		policy, err := s.find(&ops[i])
		if err != nil {
			return err
		}
		c.ops, c.policies = append(c.ops, ops[i]), append(c.policies, policy)
	}
	for from := 0; from < len(ops); {
		to := from + 1
		mix := false
		for ; to < len(ops) && ops[to].Group == ops[from].Group; to++ {
			mix = mix || c.policies[to].at != c.policies[from].at
		}
		if err := limit.CheckGroup(ops[from:to]); err != nil {
			return err
		}
		if mix {
			c.addMixed(mixed{from, to, looks && ops[from].Kind == headgate.TakeIfAll})
		}
		c.place(from, to, least)
		from = to
	}
	return nil
}

// addMixed notes a group with Ops in both stores, and changes their kinds.
func (c *call) addMixed(g mixed) {
	c.mixed = append(c.mixed, g)
	if !g.looks {
		compensate.Soften(c.ops[g.from:g.to], c.settings(g))
		return
	}
	for i := g.from; i < g.to; i++ {
		c.ops[i].Kind = headgate.Peek
	}
}

// settings gives the policies of a group, in the order of its Ops.
func (c *call) settings(g mixed) []headgate.Policy {
	all := make([]headgate.Policy, 0, g.to-g.from)
	for _, policy := range c.policies[g.from:g.to] {
		all = append(all, policy.is)
	}
	return all
}

// place adds one group to the parts. Neighbouring groups of a part get different numbers.
func (c *call) place(from, to int, least []int64) {
	var begun [2]bool
	for i := from; i < to; i++ {
		policy := c.policies[i]
		p := &c.parts[policy.at]
		if !begun[policy.at] {
			p.group, begun[policy.at] = p.group+1, true
		}
		op := c.ops[i]
		op.Policy, op.Group = policy.id(), p.group
		p.ops, p.places = append(p.ops, op), append(p.places, i)
		if least != nil {
			p.least = append(p.least, least[i])
		}
	}
}

// run queries the store of the part.
func (p *part) run() {
	for len(p.decisions) < len(p.ops) {
		p.decisions = append(p.decisions, headgate.Decision{})
	}
	if len(p.least) > 0 {
		p.err = p.store.Grant(p.ctx, p.ops, p.least, p.decisions)
		return
	}
	p.err = p.store.Apply(p.ctx, p.ops, p.decisions)
}
