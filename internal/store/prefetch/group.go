package prefetch

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// groupState is how far the decision of a group has come.
type groupState uint8

const (
	fresh   groupState = iota
	direct             // The source must decide.
	flying             // The group waits for units of a flight.
	decided            // The decisions are final.
)

// maxParts bounds the keys of a group that is decided here. The source decides larger groups.
const maxParts = 8

// call is the working memory of one Apply.
type call struct {
	groups    []group
	ops       []headgate.Op
	decisions []headgate.Decision
}

// group is one atomic group of ops.
type group struct {
	ops       []headgate.Op
	decisions []headgate.Decision
	policies  []*policy // The policies of the ops: one may be released before the group is decided.
	parts     []keyOps
	state     groupState
	// stash: prefetched units may decide the group. local: a known refusal may decide it.
	stash, local bool
	// noted: demand is counted. plain: a flight brought no usable answer.
	noted, plain bool
}

// keyOps are consecutive ops of a group under one key.
type keyOps struct {
	tag      uint64
	shape    shape
	from, n  int
	policies [maxOps]*policy
	cost     int64
	// hold, most and batch are the smallest values of the policies.
	hold        time.Duration
	most, batch int64

	// took: units were spent, from a stash or, with kept, from what a flight kept. The fields
	// below describe these units.
	taken, kept bool
	nonce       uint64
	at, ceiling headgate.Instant
	estimate    headgate.Instant
	left        int64

	said said
	// refused: the source is known to refuse the key. denial: the source has just refused it.
	refused, denial bool

	// lifted is the set's count before the source was called.
	lifted uint16

	lacks, inFlight bool
	ahead           int64
	// flight is the flight that the key waits for, and the index of the key's grant. leads: this
	// group began the flight.
	flight        *flight
	grant         int
	leads, joined bool
}

// split sorts the ops into groups. All ops are checked before any group is decided.
func (c *call) split(s *Store, ops []headgate.Op, decisions []headgate.Decision) error {
	c.groups = c.groups[:0]
	for len(ops) > 0 {
		n := 1
		for n < len(ops) && ops[n].Group == ops[0].Group {
			n++
		}
		g := c.nextGroup()
		g.ops, g.decisions = ops[:n], decisions[:n]
		if err := g.split(s); err != nil {
			return err
		}
		ops, decisions = ops[n:], decisions[n:]
	}
	return nil
}

// nextGroup adds a group, and reuses the memory of an earlier one.
func (c *call) nextGroup() *group {
	if len(c.groups) < cap(c.groups) {
		c.groups = c.groups[:len(c.groups)+1]
	} else {
		c.groups = append(c.groups, group{})
	}
	g := &c.groups[len(c.groups)-1]
	*g = group{parts: g.parts[:0], policies: g.policies[:0]}
	return g
}

// split sorts the ops of a group by key, and finds how the group may be decided.
func (g *group) split(s *Store) error {
	g.stash, g.local = true, true
	for i := range g.ops {
		op := &g.ops[i]
		p, err := s.check(op)
		if err != nil {
			return err
		}
		g.policies = append(g.policies, p)
		take := op.Kind == headgate.Take
		g.local = g.local && take && !p.counts && p.repeats(op.Cost)
		g.stash = g.stash && take && p.stashable(op.Cost)
		if !g.local && !g.stash {
			continue // The remaining ops are still checked.
		}
		if (i == 0 || op.Key != g.ops[i-1].Key) && !g.begin(s, i) || !g.last().add(op, p) {
			g.local, g.stash = false, false
		}
	}
	if err := limit.CheckGroup(g.ops); err != nil {
		return err
	}
	g.stash = g.stash && g.local
	if g.local && g.namesOneStateTwice() {
		g.local, g.stash = false, false // The source gives the error.
	}
	return nil
}

func (g *group) last() *keyOps { return &g.parts[len(g.parts)-1] }

// begin adds the key of op i. It reports false when the group has too many keys.
func (g *group) begin(s *Store, i int) bool {
	if len(g.parts) == maxParts {
		return false
	}
	op := &g.ops[i]
	g.parts = append(g.parts, keyOps{tag: s.hash(op.Key), from: i, cost: op.Cost})
	return true
}

// add adds an op to its key. It reports false when the key has too many ops.
func (p *keyOps) add(op *headgate.Op, policy *policy) bool {
	if p.n == maxOps {
		return false
	}
	p.shape[p.n], p.policies[p.n] = word(op), policy
	if p.n == 0 {
		p.hold, p.most, p.batch = policy.hold, policy.most, policy.batch
	}
	p.hold, p.most = min(p.hold, policy.hold), min(p.most, policy.most)
	if policy.batch > 0 && (p.batch == 0 || policy.batch < p.batch) {
		p.batch = policy.batch
	}
	p.batch = min(p.batch, p.most)
	p.n++
	return true
}

// namesOneStateTwice also reports keys with different costs: a stash cannot serve these.
func (g *group) namesOneStateTwice() bool {
	for i := range g.ops {
		for j := range i {
			if g.ops[i].Window == g.ops[j].Window && g.ops[i].Key == g.ops[j].Key {
				return true
			}
		}
	}
	for i := range g.parts {
		p := &g.parts[i]
		for j := range p.n {
			g.stash = g.stash && g.ops[p.from+j].Cost == p.cost
		}
	}
	return false
}

// border gives the first instant after t at which a window of p ends.
func (p *keyOps) border(t headgate.Instant) (first headgate.Instant, ok bool) {
	for i := range p.n {
		if b, is := p.policies[i].grid.after(t); is && (!ok || b < first) {
			first, ok = b, true
		}
	}
	return first, ok
}
