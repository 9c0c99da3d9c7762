package guard

import (
	"context"
	"slices"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/domain"
)

// DecideDescriptors decides the descriptors of one request to a decision server, with one Apply of
// the store. All requests have the Domain of the first one, and each has the entries of one
// descriptor. answers must be at least as long as requests.
//
// Each descriptor has its own answer. In a domain with a tree (Config.Domains), it counts under the
// node that Answer.Leaf gives, and a node without limits allows it. In another domain, the rules
// that match the domain or the entries decide, as in DecideAll, and no descriptor waits: DecideDescriptors
// sets the NoWait of each request.
//
// A request of the Kind Peek and Cost 0 reads the counts. Refund gives units back that any
// request took. With together, all descriptors of a tree are one group: if one is over its limit, the
// others are not counted (headgate.TakeIfAll). Rules ignore together.
//
// A limit that a request has in Sent replaces that of the tree. Answer.Error is
// headgate.ErrTooManyPolicies when the store has no capacity for another limit.
//
// If a matching rule of the Mode Enforce counts by something else than descriptors, such as an address,
// all answers have a *UnsuppliedError.
//
// The Config's Observer gets the answers of rules. A front reports those of trees.
func (g *Guard) DecideDescriptors(ctx context.Context, requests []headgate.Request, answers []Answer, together bool) {
	s := g.now()
	if s == nil || len(requests) == 0 || s.trees[requests[0].Domain] == nil {
		for i := range requests {
			requests[i].NoWait = true
		}
		if s != nil {
			if err := s.unsupplied(requests); err != nil {
				for i := range requests {
					answers[i].fail(err)
				}
				return
			}
		}
		g.DecideAll(ctx, requests, answers)
		return
	}
	b := g.state.batch()
	defer g.state.batches.Put(b)
	answers = answers[:len(requests)]
	b.tree = treeCall{batch: b, set: s, tree: s.trees[requests[0].Domain], requests: requests, answers: answers, together: together}
	_ = g.put(ctx, s, &b.tree, &b.question, requests, answers)
	b.tree = treeCall{}
	clear(b.ops)
}

// HasDomain reports whether a tree decides the domain.
func (g *Guard) HasDomain(name string) bool {
	s := g.now()
	return s != nil && s.trees[name] != nil
}

// treeFacts are what the tree of a domain notes in an Answer.
type treeFacts struct {
	match *domain.Match // nil until a call has needed it
	tree  *tree         // the domain's tree; nil when rules decided
	node  *treeLeaf     // the node that decided
	sent  *sentLimit    // the limit that was sent with the descriptor
}

// treeCall is one DecideDescriptors of a domain with a tree, and the source of its decisions.
type treeCall struct {
	batch    *batch
	set      *set
	tree     *tree
	requests []headgate.Request
	answers  []Answer
	together bool
	replaces bool     // a node of the call replaces others
	recalled []recall // by descriptor; empty without a memory of refusals
	began    time.Duration
}

// ask adds the Ops of all descriptors. With together they are one group, and what cannot be in it
// follows in groups of its own.
func (c *treeCall) ask(context.Context, *question, []headgate.Request, []Answer) (waited time.Duration) {
	for i := range c.answers {
		c.find(i)
	}
	if c.replaces {
		c.replace()
	}
	for i := range c.answers {
		c.addResults(i)
	}
	c.recallAll()
	merged := c.batch.merges(c.together)
	for i := range c.answers {
		if !c.refused(i) {
			c.addOps(i, merged)
		}
	}
	if !c.together {
		return 0
	}
	for i := range c.answers {
		a := &c.answers[i]
		for j := range a.Results {
			if r := &a.Results[j]; r.op == opLater {
				a.nextGroup()
				a.addOp(r, r.window.id)
			}
		}
	}
	clear(merged)
	return 0
}

func (c *treeCall) settle(ctx context.Context, i int, req *headgate.Request, a *Answer, err error) {
	a.read(ctx, c.set, err)
	c.learn(i)
	c.set.guard.conclude(ctx, c.set, req, a)
	// What a refused descriptor has taken stays counted: together, several descriptors can have the receipt of one Op.
	c.batch.receipts = c.batch.receipts[:0]
	if a.sent != nil {
		c.tree.sent.table.release(a.sent)
	}
}

// find finds the node of a descriptor, or the limit that was sent with it.
func (c *treeCall) find(i int) {
	req, a := &c.requests[i], &c.answers[i]
	a.reset()
	a.from, a.tree = c.set, c.tree
	if req.Cost < 0 || req.Cost > headgate.MaxUnits {
		a.Error, a.Verdict = headgate.ErrBadCost, headgate.Deny
		return
	}
	if a.match == nil {
		a.match = new(domain.Match) // Its size would add to every Ticket.
	}
	found := c.tree.index.Find(req.Descriptors, a.match)
	switch {
	case req.Sent.Per > 0:
		if a.sent, a.Error = c.tree.sent.acquire(req.Sent); a.Error != nil {
			a.Verdict = headgate.Deny
		}
	case found && a.match.Leaf() != domain.NoLeaf:
		a.node = &c.tree.leaves[a.match.Leaf()]
		c.replaces = c.replaces || len(a.node.Replaces) > 0
	}
}

// replace drops the nodes whose names other descriptors of the call replace. A node without a limit
// has nothing to replace.
func (c *treeCall) replace() {
	names, seen := map[string]bool{}, map[*treeLeaf]bool{}
	for i := range c.answers {
		n := c.answers[i].node
		if n == nil || seen[n] {
			continue
		}
		seen[n] = true
		for _, name := range n.Replaces {
			names[name] = true
		}
	}
	for i := range c.answers {
		if a := &c.answers[i]; a.node != nil && !a.node.Unlimited && names[a.node.Name] {
			a.node = nil
		}
	}
}

// addResults adds the Results of one descriptor.
func (c *treeCall) addResults(i int) {
	req, a := &c.requests[i], &c.answers[i]
	p := c.counter(a)
	if p == nil {
		return
	}
	from := len(a.keys)
	a.keys = domain.AppendKey(append(a.keys, p.space...), c.tree.Name, req.Descriptors, a.shares())
	// The store reads the key only during Apply, and nothing writes to it until then.
	key := unsafe.String(unsafe.SliceData(a.keys[from:]), len(a.keys)-from) //nolint:gosec // A copy would be an allocation.
	windows := p.limits
	if a.sent != nil {
		windows = a.sent.windows
	}
	for w := range windows {
		a.describe(a.nextResult(), p, &windows[w], key, req)
	}
	a.addOperatorBan(p, req, key)
}

// addOps adds the Ops of one descriptor. With merged, they are a part of the group of all descriptors.
func (c *treeCall) addOps(i int, merged merges) {
	a := &c.answers[i]
	if merged == nil {
		a.nextGroup()
	}
	for j := range a.Results {
		r := &a.Results[j]
		if merged == nil {
			a.addOp(r, r.window.id)
			if r.mode == headgate.Refund {
				a.nextGroup()
			}
			continue
		}
		if r.window.kind == kindOperatorBan {
			r.op = opLater
			continue
		}
		if r.mode != headgate.Refund {
			r.mode = headgate.TakeIfAll
		}
		if r.mode == headgate.Refund || !merged.add(a, r) {
			r.op = opLater
		}
	}
}

// shares gives the nodes whose wildcards stand for values in the key: none for a sent limit.
func (a *Answer) shares() *domain.Match {
	if a.sent != nil {
		return nil
	}
	return a.match
}

// counter gives what counts a descriptor: its node, or the rule of sent limits; nil if nothing does.
func (c *treeCall) counter(a *Answer) *prepared {
	switch {
	case a.Error != nil:
		return nil
	case a.sent != nil:
		return &c.tree.sent.rule
	case a.node != nil && len(a.node.counts.limits) > 0:
		return &a.node.counts
	default:
		return nil
	}
}

// describe fills a result without a decision.
func (a *Answer) describe(r *Result, p *prepared, w *window, key string, req *headgate.Request) {
	r.Rule, r.Window, r.Policy, r.Limit, r.Stage, r.Number = p.Rule, w.index, w.policy, w.limit, "", p.number
	r.Shared, r.Fallback, r.window, r.from, r.key, r.cost = false, false, w, p, key, req.Cost
	r.mode, r.full, r.member, r.before, r.Recalled = req.Kind, false, nil, 0, false
}

// Leaf gives the limit of the tree that decided a descriptor, after DecideDescriptors. It is nil when
// no node matches, when the node has no limit, when another descriptor replaces the limit, and
// for a limit that was sent.
func (a *Answer) Leaf() *Leaf {
	if a.node == nil {
		return nil
	}
	return a.node.Leaf
}

// FixedMetric reports whether AppendMetric gives one name for all descriptors that have the Leaf of
// this one.
func (a *Answer) FixedMetric() bool { return a.node != nil && a.match.FixedMetric() }

// InTree reports whether the tree of a domain decided, and not rules.
func (a *Answer) InTree() bool { return a.tree != nil }

// AppendMetric appends the name of the limit that decided a descriptor, as metrics of Envoy's service
// have it: the domain, and the key and value of each level. Values are those of the tree, or those
// of the request where the tree says so. A sent limit has those of the request.
func (a *Answer) AppendMetric(dst []byte, entries headgate.Descriptors) []byte {
	if a.tree == nil {
		return dst
	}
	return domain.AppendMetric(dst, a.tree.Name, entries, a.shares())
}

// AppendOtherMetric appends the name that stands for all names that values of requests give to the
// limit. It is that of AppendMetric for a limit without such names.
func (a *Answer) AppendOtherMetric(dst []byte, entries headgate.Descriptors) []byte {
	const other = "other"
	if a.tree == nil {
		return dst
	}
	if a.sent != nil || a.node == nil {
		return domain.AppendMetric(dst, a.tree.Name, headgate.Descriptors{{Name: other}}, nil)
	}
	all := slices.Clone(entries)
	for i := range all {
		all[i].Value = other
	}
	return domain.AppendMetric(dst, a.tree.Name, all, a.match)
}
