package prefetch

import (
	"time"

	"github.com/headgate/headgate"
)

// What a group of ops has come to.
type groupState uint8

const (
	fresh   groupState = iota
	direct             // The source is to be asked.
	flying             // It waits for units that have been asked for.
	decided            // Its decisions are made.
)

// maxParts bounds the keys of a group that is decided here; greater ones go to the source.
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
	policies  []*policy // of the ops: one may be released before the group is decided
	parts     []part
	state     groupState
	// stash says that units ahead may decide it; local, that a known refusal may.
	stash, local bool
	// noted says that demand is noted; plain, that a flight brought no answer.
	noted, plain bool
}

// part is the ops of a group that stand side by side under one key.
type part struct {
	tag      uint64
	shape    shape
	from, n  int
	policies [maxOps]*policy
	cost     int64
	// hold, most and batch are the least of the part's policies.
	hold        time.Duration
	most, batch int64

	// took says that units were spent, or kept for it by a flight; the rest is of those.
	took, kept  bool
	nonce       uint64
	at, ceiling headgate.Instant
	estimate    headgate.Instant
	left        int64

	said said
	// refused says that the source is known to refuse it, denial that it has just told so.
	refused, denial bool

	// lifted is what its set's was before the source was asked.
	lifted uint16

	lacks, inFlight bool
	ahead           int64
	// The flight it waits for, and which of its legs; leads says that it began it.
	flight        *flight
	leg           int
	leads, joined bool
}

// split sorts ops into groups and checks them all before any is decided.
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

// nextGroup adds a group, with the parts' memory of one before.
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

// split sorts the ops of a group by key and says in which ways it may be decided.
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
			continue // The faults of the others are still looked for.
		}
		if (i == 0 || op.Key != g.ops[i-1].Key) && !g.begin(s, i) || !g.last().add(op, p) {
			g.local, g.stash = false, false
		}
	}
	g.stash = g.stash && g.local
	if g.local && g.namesOneStateTwice() {
		g.local, g.stash = false, false // The source says what is wrong with that.
	}
	return nil
}

func (g *group) last() *part { return &g.parts[len(g.parts)-1] }

// begin adds the part that begins at op i, if there is room.
func (g *group) begin(s *Store, i int) bool {
	if len(g.parts) == maxParts {
		return false
	}
	op := &g.ops[i]
	g.parts = append(g.parts, part{tag: s.hash(op.Key), from: i, cost: op.Cost})
	return true
}

// add counts an op in, if there is room.
func (p *part) add(op *headgate.Op, of *policy) bool {
	if p.n == maxOps {
		return false
	}
	p.shape[p.n], p.policies[p.n] = word(op), of
	if p.n == 0 {
		p.hold, p.most, p.batch = of.hold, of.most, of.batch
	}
	p.hold, p.most = min(p.hold, of.hold), min(p.most, of.most)
	if of.batch > 0 && (p.batch == 0 || of.batch < p.batch) {
		p.batch = of.batch
	}
	p.batch = min(p.batch, p.most)
	p.n++
	return true
}

// namesOneStateTwice also finds parts of different costs, which a stash cannot bear.
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

// border gives the first instant after t at which a window of the part ends.
func (p *part) border(t headgate.Instant) (first headgate.Instant, ok bool) {
	for i := range p.n {
		if b, is := p.policies[i].grid.after(t); is && (!ok || b < first) {
			first, ok = b, true
		}
	}
	return first, ok
}
