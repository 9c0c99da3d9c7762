package memory

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// checkKinds gives the error of an Op or a group with a Kind that is not possible there, before
// any group is decided.
func (s *Store) checkKinds(ops []headgate.Op) error {
	for from := 0; from < len(ops); {
		to, special := from+1, ops[from].Kind > headgate.Book
		for to < len(ops) && ops[to].Group == ops[from].Group {
			special = special || ops[to].Kind > headgate.Book
			to++
		}
		if special {
			if err := s.checkGroup(ops[from:to]); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

func (s *Store) checkGroup(group []headgate.Op) error {
	for i := range group {
		op := &group[i]
		if policy := s.policy(op.Policy); !fits(policy, op.Cost, op.Kind) || !policy.Names(op.Policy) {
			return s.fault(policy, op.Policy, op.Cost, op.Kind)
		}
	}
	return limit.CheckGroup(group)
}

// refund decides a Refund, under the lock of its shard. A key without a place gets none.
//
// The epoch of a log or a sliding window changes together with Returned, so that 2^32 refunds
// have other receipts. package limit does the same for a cell.
func (s *Store) refund(t *turn, d *headgate.Decision) {
	none := place{cell: limit.Cell{Policy: uint16(t.id)}}
	alone := *t // A copy on the stack may point at a place on the stack.
	if alone.place == nil {
		alone.place = &none
	}
	p := alone.place
	units := int64(0)
	if t.cost > 0 {
		var given bool
		if units, given = s.giveUnits(&alone); given && !t.plan.InCell() {
			p.cell.Epoch++
			p.cell.Returned++
		}
	}
	if !t.plan.InCell() {
		p.cell.Time = s.blockFreeAt(s.planOf(p), p)
	}
	alone.cost, alone.mode = 0, headgate.Peek
	copied := *p
	switch {
	case t.plan.Calendar() && units > 0:
		t.plan.Explain(&alone.draw, d)
	case t.plan.Calendar():
		alone.place = &copied // The look at the count must not end it.
		s.judge(&alone, d)
	default:
		s.judge(&alone, d)
	}
	limit.SettleRefund(d, units)
}
