package script

import (
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// answer is the reply of decide.lua on one Op, and the result of its group. The script gives times
// and counts from before the decision. The client computes the decision with the same arithmetic.
type answer struct {
	plan    *Plan
	kind    headgate.OpKind
	cost    int64
	edges   *headgate.Edges
	now     int64
	numbers []int64

	// passes: the group passes. stays: the Op passes, but its group is refused. counted: the attempt
	// counts even if the group is refused.
	passes, stays, counted bool
	// refund: the last number can be a number of units, and not the version.
	refund bool
}

// Explain fills the decisions of a group from the reply. decisions must have at least len(ops)
// elements. group is the index of the group in the order of Add, from 0. ops, plans and places must be
// the arguments of Add.
//
// An Op that took units has a Receipt with a nonzero Place. The caller sets the Receipt's Nonce and
// Policy. For a grant, Receipt.Cost is the number of granted units. If the grant is refused, the
// decision is that of a Take of least.
func (b *Batch) Explain(group int, ops []headgate.Op, plans []*Plan, places []Place, decisions []headgate.Decision) error {
	if group < 0 || group >= len(b.groups) || len(b.numbers) != b.width || len(decisions) < len(ops) ||
		b.groups[group].ops != len(ops) || len(plans) != len(ops) || len(places) != len(ops) {
		return fmt.Errorf("script: no reply for group %d of %d with %d Ops: call Read first, and use the arguments of Add",
			group, len(b.groups), len(ops))
	}
	numbers, granted := b.numbers[b.groups[group].from:], int64(-1)
	if b.groups[group].grant {
		granted, numbers = numbers[0], numbers[1:]
		if granted < 1 || granted > ops[0].Cost {
			return wrong("a grant of %d for %d units", granted, ops[0].Cost)
		}
	}
	passes, possible := true, true
	for i, from := 0, numbers; i < len(ops); i++ {
		a := answerTo(b.numbers[0], &ops[i], plans[i], from, granted)
		from = from[plans[i].width:]
		if err := a.explain(&decisions[i]); err != nil {
			return err
		}
		passes = passes && decisions[i].Verdict != headgate.Deny
		possible = possible && decisions[i].Reason != headgate.Never
	}
	for i := range ops {
		a := answerTo(b.numbers[0], &ops[i], plans[i], numbers, granted)
		numbers = numbers[plans[i].width:]
		a.passes, a.stays = passes, !passes && decisions[i].Verdict != headgate.Deny
		a.counted = plans[i].counts && possible || plans[i].policy.CountAll
		if a.stays && a.kind == headgate.TakeIfAll {
			a.kind = headgate.Peek // The script has counted nothing.
		}
		a.settle(&decisions[i], places[i])
	}
	if limit.Corrects(ops[0].Kind) {
		return b.explainRefund(group, &ops[0], plans[0], &decisions[0])
	}
	return nil
}

// explainRefund fills the decision on a Refund or a Charge. In place of the version, a Charge gives the number of units that it has
// counted, and a Refund of a fixed window the number of units that came back.
func (b *Batch) explainRefund(group int, op *headgate.Op, p *Plan, d *headgate.Decision) error {
	units := int64(0)
	if p.policy.Algorithm == headgate.FixedWindow || op.Kind == headgate.Charge && p.width > 0 {
		if units = b.numbers[b.groups[group].from+p.width-1]; units < 0 || units > op.Cost {
			return wrong("%d units of a Refund or a Charge of %d", units, op.Cost)
		}
	}
	limit.SettleRefund(d, units)
	return nil
}

func answerTo(now int64, op *headgate.Op, p *Plan, numbers []int64, granted int64) answer {
	a := answer{plan: p, kind: op.Kind, cost: op.Cost, edges: op.Edges, now: now, numbers: numbers[:p.width]}
	if granted > 0 {
		a.cost = granted
	}
	if limit.Corrects(a.kind) { // The numbers are those after the Refund or the Charge.
		a.kind, a.cost, a.refund = headgate.Peek, 0, true
	}
	return a
}

// isLast reports whether the last number of a reply is possible.
func (a *answer) isLast(n int64) bool { return isVersion(n) || a.refund && n >= 0 }

func wrong(format string, args ...any) error {
	return fmt.Errorf("script: the reply of decide.lua has "+format+": "+report, args...)
}

// settle sets the receipt of d. For an Op that passes in a refused group, it sets Remaining and
// ResetAfter instead.
func (a *answer) settle(d *headgate.Decision, place Place) {
	r := d.Receipt
	d.Receipt = headgate.Receipt{}
	switch {
	case a.stays:
		a.settleRefused(d)
	case a.passes && a.cost > 0 && a.kind != headgate.Peek && a.plan.policy.Algorithm != headgate.Ban:
		r.Cost, r.Place = a.cost, place.Words()
		if !a.plan.blocks {
			version(a.numbers[a.plan.width-1]).put(&r)
		}
		d.Receipt = r
	}
}

func (a *answer) settleRefused(d *headgate.Decision) {
	without := *a
	without.cost, without.kind = 0, headgate.Peek
	var left headgate.Decision
	switch {
	case a.plan.policy.Algorithm == headgate.Ban && a.kind != headgate.Peek:
		return // The reported numbers count the attempt.
	case a.kind != headgate.Peek && a.counted:
		// The reported reset counts the attempt. The reported units do not.
		numbers := [maxWidth]int64{}
		copy(numbers[:], a.numbers)
		numbers[1] = min(numbers[1]+a.cost, a.plan.mostUsed())
		without.numbers = numbers[:a.plan.width]
	}
	if without.explain(&left) != nil {
		return // explain has already subtracted the cost.
	}
	d.Remaining, d.ResetAfter = left.Remaining, left.ResetAfter
}
