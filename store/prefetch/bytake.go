package prefetch

import (
	"context"
	"slices"

	"github.com/headgate/headgate"
)

// ByTake lets units be taken ahead from a store that has no Grant of its own, of
// Memcached say: it asks for all that is wished for, and, where that does not pass, for what the answer says
// remains. In between others may take, so that it can get less than there is, never
// more; a call is one round trip when the wish passes, and three at most.
func ByTake(store headgate.Store) Source { return byTake{store} }

type byTake struct{ headgate.Store }

// Grant implements Source.
func (g byTake) Grant(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	if err := g.Apply(ctx, ops, decisions); err != nil {
		return err
	}
	r := retries{ops: ops, least: least, decisions: decisions, asked: make([]int64, len(ops))}
	for i := range ops {
		r.asked[i] = ops[i].Cost
	}
	for _, ask := range [...]func(begin int, remains int64) int64{
		func(begin int, remains int64) int64 { return max(least[begin], min(remains, ops[begin].Cost)) },
		func(begin int, _ int64) int64 { return least[begin] },
	} {
		r.gather(ask)
		if len(r.again) == 0 {
			continue
		}
		if err := g.Apply(ctx, r.again, r.answers); err != nil {
			// What the first call took would be lost: it is given back as far as that goes.
			err = giveBack(ctx, g, decisions[:len(ops)], err)
			for i := range ops {
				decisions[i] = headgate.Undecided()
			}
			return err
		}
		for i, at := range r.at {
			decisions[at] = r.answers[i]
		}
	}
	return nil
}

// retries are the groups of a call that were refused and ask for less.
type retries struct {
	ops       []headgate.Op
	least     []int64
	decisions []headgate.Decision
	asked     []int64 // by each op, last

	again   []headgate.Op
	at      []int // where they stand among ops
	answers []headgate.Decision
}

// gather finds the refused groups that asked for more than their least, and lets them
// ask for what ask gives, of what the answers say remains.
func (r *retries) gather(ask func(begin int, remains int64) int64) {
	r.again, r.at = r.again[:0], r.at[:0]
	group := uint8(0)
	var end int
	for begin := 0; begin < len(r.ops); begin = end {
		refused, remains := false, r.asked[begin]
		for end = begin; end < len(r.ops) && r.ops[end].Group == r.ops[begin].Group; end++ {
			if r.decisions[end].Verdict != headgate.Allow {
				refused, remains = true, min(remains, r.decisions[end].Remaining)
			}
		}
		if !refused || r.asked[begin] <= r.least[begin] {
			continue
		}
		n := ask(begin, remains)
		group ^= 1 // Groups that stand side by side now must differ.
		for i := begin; i < end; i++ {
			op := r.ops[i]
			op.Cost, op.Group, r.asked[i] = n, group, n
			r.again, r.at = append(r.again, op), append(r.at, i)
		}
	}
	r.answers = slices.Grow(r.answers[:0], len(r.again))[:len(r.again)]
}

// giveBack returns what the decisions took, and gives the error that made it useless.
func giveBack(ctx context.Context, store headgate.Store, decisions []headgate.Decision, err error) error {
	var receipts []headgate.Receipt
	for i := range decisions {
		if !decisions[i].Receipt.Empty() {
			receipts = append(receipts, decisions[i].Receipt)
		}
	}
	if len(receipts) > 0 {
		_ = store.Return(context.WithoutCancel(ctx), slices.Clip(receipts)) // What stays counted is no more than was asked for.
	}
	return err
}
