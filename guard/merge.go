package guard

import "github.com/headgate/headgate"

// merges finds the Ops of one state within one group. A group has at most one Op for each state, so
// descriptors that count under one limit share an Op with the sum of their costs. nil merges
// nothing.
type merges map[mergeKey]int

type mergeKey struct {
	key    string
	window uint8
}

// merges gives the empty merges of a call, if its descriptors are one group.
func (b *batch) merges(together bool) merges {
	if !together {
		return nil
	}
	if b.merged == nil {
		b.merged = merges{}
	}
	return b.merged
}

// add adds the Op of a result, or adds its cost to the Op of an earlier one. It reports false if
// another limit counts in the same state: that Op needs a group of its own.
func (m merges) add(a *Answer, r *Result) bool {
	at := mergeKey{r.key, r.window.number}
	first, known := m[at]
	if !known {
		a.addOp(r, r.window.id)
		m[at] = r.op
		return true
	}
	op := &a.request.ops[first]
	if op.Policy != r.window.id {
		return false
	}
	r.op, r.before = first, op.Cost
	op.Cost = min(op.Cost+r.cost, headgate.MaxUnits)
	return true
}

// divide gives a result its part of the decision on an Op that several results share, as if they
// were decided one after another.
func (r *Result) divide(total int64) {
	d := &r.Decision
	switch {
	case total == r.cost:
	case d.Verdict != headgate.Deny && !d.Receipt.Empty():
		d.Remaining += total - r.before - r.cost
	case d.Verdict != headgate.Deny:
	case r.before+r.cost <= d.Remaining:
		*d = headgate.Decision{
			Verdict: headgate.Allow, Reason: headgate.WithinLimit, Limit: d.Limit, Remaining: d.Remaining - r.before - r.cost,
			ResetAfter: d.ResetAfter, At: d.At,
		}
	default:
		d.Remaining = max(0, d.Remaining-r.before)
	}
}
