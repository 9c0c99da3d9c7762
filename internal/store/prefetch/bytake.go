package prefetch

import (
	"context"
	"slices"

	"github.com/headgate/headgate"
)

// ByTake makes a Source from a store without a Grant, such as Memcached. It first takes the
// whole Cost. If that does not pass, it takes the Remaining of the answer. Other callers may
// take in between, so the grant can be less than possible, never more. A call needs one
// round trip when the whole Cost passes, and at most three.
func ByTake(store headgate.Store) Source { return byTake{store} }

type byTake struct{ headgate.Store }

// Unwrap gives the store behind, for headgate.SlotsOf.
func (g byTake) Unwrap() headgate.Store { return g.Store }

// ReturnLast implements headgate.LastReturner.
func (g byTake) ReturnLast(ctx context.Context, r *headgate.Receipt) (returned bool, err error) {
	if store, ok := g.Store.(headgate.LastReturner); ok {
		return store.ReturnLast(ctx, r)
	}
	return false, nil
}

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
			// Units of the first call would be lost, so they are returned as far as possible.
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

// retries are the refused groups of a call that try again with a lower cost.
type retries struct {
	ops       []headgate.Op
	least     []int64
	decisions []headgate.Decision
	asked     []int64 // the last cost of each op

	again   []headgate.Op
	at      []int // the position of each group among ops
	answers []headgate.Decision
}

// gather collects the refused groups that tried more than their least. ask gives their next
// cost from the Remaining of the answers.
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
		group ^= 1 // Neighbouring groups need different numbers.
		for i := begin; i < end; i++ {
			op := r.ops[i]
			op.Cost, op.Group, r.asked[i] = n, group, n
			r.again, r.at = append(r.again, op), append(r.at, i)
		}
	}
	r.answers = slices.Grow(r.answers[:0], len(r.again))[:len(r.again)]
}

// giveBack returns the units of the decisions, and gives the error that made them useless.
func giveBack(ctx context.Context, store headgate.Store, decisions []headgate.Decision, err error) error {
	var receipts []headgate.Receipt
	for i := range decisions {
		if !decisions[i].Receipt.Empty() {
			receipts = append(receipts, decisions[i].Receipt)
		}
	}
	if len(receipts) > 0 {
		_ = store.Return(context.WithoutCancel(ctx), slices.Clip(receipts)) // Units that cannot be returned stay counted, which is safe.
	}
	return err
}
