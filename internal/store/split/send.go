package split

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
)

// send queries the stores of all parts at once, and fills the decisions. After an EdgeError, groups with an Op that is not decided
// are undecided, and have counted nothing.
func (s *Store) send(ctx context.Context, c *call, decisions []headgate.Decision) error {
	first, second := &c.parts[main], &c.parts[perSecond]
	first.ctx, second.ctx = ctx, ctx
	switch {
	case len(second.ops) == 0:
		first.run()
	case len(first.ops) == 0:
		second.run()
	default:
		go c.beside()
		first.run()
		<-c.done
	}
	outside := cmp.Or(first.err, second.err)
	if outside != nil && (!first.partly() || !second.partly()) {
		return fault(ctx, first, second)
	}
	for i := range c.parts {
		p := &c.parts[i]
		for j, place := range p.places {
			d := &decisions[place]
			*d = p.decisions[j]
			if !d.Receipt.Empty() {
				d.Receipt.Policy = c.ops[place].Policy
			}
		}
	}
	s.settle(ctx, c, decisions)
	return outside
}

// partly reports that a store has decided the groups of a part, or those without an EdgeError.
func (p *part) partly() bool { return p.err == nil || compensate.IsOutside(p.err) }

// fault returns the units of the part that was decided, and gives the error of the other part.
func fault(ctx context.Context, first, second *part) error {
	failed, decided := first, second
	switch {
	case !first.partly() && !second.partly():
		return errors.Join(first.err, second.err)
	case first.partly():
		failed, decided = second, first
	}
	if len(decided.ops) == 0 {
		return failed.err
	}
	if back := appendReceipts(nil, decided.decisions[:len(decided.ops)]); len(back) > 0 {
		_ = decided.store.Return(ctx, back) // Units that cannot be returned stay counted, which is safe.
	}
	if errors.Is(failed.err, headgate.ErrUnavailable) {
		// ErrUnavailable would say that no store was queried.
		return fmt.Errorf("split: one of two stores failed: %s", failed.err.Error())
	}
	return failed.err
}

// appendReceipts appends what decisions have taken.
func appendReceipts(back []headgate.Receipt, decisions []headgate.Decision) []headgate.Receipt {
	for i := range decisions {
		if r := decisions[i].Receipt; !r.Empty() {
			back = append(back, r)
		}
	}
	return back
}

// settle combines the decisions of each group with Ops in both stores, and returns the units of
// refused groups. A failed return leaves the units used, and the refusal stands.
func (s *Store) settle(ctx context.Context, c *call, decisions []headgate.Decision) {
	var back []headgate.Receipt
	for _, g := range c.mixed {
		if all := decisions[g.from:g.to]; slices.Contains(all, headgate.Undecided()) {
			back = appendReceipts(back, all)
			compensate.Undecide(all)
			continue
		}
		back = c.combine(g, decisions, back)
	}
	if len(back) > 0 {
		_ = s.undo(ctx, back)
	}
}

// combine puts the Ops of each store together, as package compensate needs them.
func (c *call) combine(g mixed, decisions []headgate.Decision, back []headgate.Receipt) []headgate.Receipt {
	n := g.to - g.from
	ops, policies, parts := make([]headgate.Op, 0, n), make([]headgate.Policy, 0, n), make([]headgate.Decision, 0, n)
	places, ends := make([]int, 0, n), [2]int{}
	for at := main; at <= perSecond; at++ {
		for i := g.from; i < g.to; i++ {
			if c.policies[i].at == at {
				ops, policies = append(ops, c.ops[i]), append(policies, c.policies[i].is)
				parts, places = append(parts, decisions[i]), append(places, i)
			}
		}
		ends[at] = len(ops)
	}
	back = compensate.Settle(ops, policies, ends[:], parts, back)
	for i, place := range places {
		decisions[place] = parts[i]
	}
	return back
}
