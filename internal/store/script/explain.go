package script

import (
	"fmt"

	"github.com/headgate/headgate"
)

// answer is the reply of decide.lua on one Op, and the result of the group. The script gives times
// and counts from before the decision. The client computes their meaning, with the same arithmetic.
type answer struct {
	plan *Plan
	mode headgate.OpKind
	cost int64
	now  int64
	told []int64

	// passes: the Op's group is taken. stays: the Op passes and its group is refused. counted: the
	// attempt counts although the group is refused.
	passes, stays, counted bool
}

// Explain fills the decisions of a group from the reply. There are as many decisions as ops. group
// is its number in the order of Add, from 0. ops, plans and places are those of Add.
//
// An Op that took units has a Receipt with a Place that is not zero. The caller sets its Nonce and
// its Policy. For a grant, Receipt.Cost is the granted number, and a refusal is that of least.
func (b *Batch) Explain(group int, ops []headgate.Op, plans []*Plan, places []Place, decisions []headgate.Decision) error {
	if group < 0 || group >= len(b.groups) || len(b.numbers) != b.width || len(decisions) < len(ops) ||
		b.groups[group].ops != len(ops) || len(plans) != len(ops) || len(places) != len(ops) {
		return fmt.Errorf("script: group %d of %d with %d Ops was not read: Read the reply, and give what was added",
			group, len(b.groups), len(ops))
	}
	told, granted := b.numbers[b.groups[group].from:], int64(-1)
	if b.groups[group].grant {
		granted, told = told[0], told[1:]
		if granted < 1 || granted > ops[0].Cost {
			return wrong("a grant of %d for %d units", granted, ops[0].Cost)
		}
	}
	passes, possible := true, true
	for i, from := 0, told; i < len(ops); i++ {
		a := answerTo(b.numbers[0], &ops[i], plans[i], from, granted)
		from = from[plans[i].width:]
		if err := a.explain(&decisions[i]); err != nil {
			return err
		}
		passes = passes && decisions[i].Verdict != headgate.Deny
		possible = possible && decisions[i].Reason != headgate.Never
	}
	for i := range ops {
		a := answerTo(b.numbers[0], &ops[i], plans[i], told, granted)
		told = told[plans[i].width:]
		a.passes, a.stays = passes, !passes && decisions[i].Verdict != headgate.Deny
		a.counted = plans[i].counts && possible
		a.settle(&decisions[i], places[i])
	}
	return nil
}

func answerTo(now int64, op *headgate.Op, p *Plan, told []int64, granted int64) answer {
	a := answer{plan: p, mode: op.Kind, cost: op.Cost, now: now, told: told[:p.width]}
	if granted > 0 {
		a.cost = granted
	}
	return a
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("script: decide.lua gave "+format+": "+report, args...)
}

// explain fills d as if the Op were a group of its own.
func (a *answer) explain(d *headgate.Decision) error {
	*d = headgate.Decision{Reason: headgate.WithinLimit, Limit: a.plan.room}
	switch a.plan.policy.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		return a.explainBucket(d)
	case headgate.FixedWindow:
		return a.explainFixed(d)
	case headgate.SlidingLog, headgate.SlidingWindow:
		return a.explainSliding(d)
	default:
		return a.explainBan(d)
	}
}

// settle sets the receipt of d, or the Remaining of an Op that passes in a refused group.
func (a *answer) settle(d *headgate.Decision, place Place) {
	r := d.Receipt
	d.Receipt = headgate.Receipt{}
	switch {
	case a.stays:
		a.stayBehind(d)
	case a.passes && a.cost > 0 && a.mode != headgate.Peek && a.plan.policy.Algorithm != headgate.Ban:
		r.Cost, r.Place = a.cost, place.Words()
		if !a.plan.blocks {
			version(a.told[a.plan.width-1]).put(&r)
		}
		d.Receipt = r
	}
}

func (a *answer) stayBehind(d *headgate.Decision) {
	without := *a
	without.cost, without.mode = 0, headgate.Peek
	var left headgate.Decision
	switch {
	case a.plan.policy.Algorithm == headgate.Ban && a.mode != headgate.Peek:
		return // The reported numbers count the attempt.
	case a.mode != headgate.Peek && a.counted:
		// The reported reset counts the attempt. The reported units do not.
		told := [5]int64{}
		copy(told[:], a.told)
		told[1] = min(told[1]+a.cost, a.plan.room)
		without.told = told[:a.plan.width]
	}
	if without.explain(&left) != nil {
		return // explain has already subtracted the cost.
	}
	d.Remaining, d.ResetAfter = left.Remaining, left.ResetAfter
}
