package compensate

import (
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Soften changes the kinds of a group's Ops, so that its parts may be decided one after another.
// If an Op can never pass, all other Ops become Peek, except those of bans and those with
// CountAll. policies[i] is the policy of ops[i]. Soften reports whether an Op can never pass.
func Soften(ops []headgate.Op, policies []headgate.Policy) (never bool) {
	for i := range ops {
		ban := policies[i].Algorithm == headgate.Ban
		never = never || !ban && ops[i].Cost > limit.Room(policies[i])
	}
	if !never {
		return false
	}
	for i := range ops {
		if !limit.CountsRefused(&policies[i], false) {
			ops[i].Kind = headgate.Peek
		}
	}
	return true
}

// Counting gives the Ops of a group of TakeIfAll that must count, by the decisions of a Peek of
// all its Ops: all Ops if the group passes. Otherwise they are the refused Ops whose policies
// count refused attempts.
func Counting(policies []headgate.Policy, decisions []headgate.Decision) (which []int, passes bool) {
	passes, possible := true, true
	for i := range decisions {
		passes = passes && decisions[i].Verdict != headgate.Deny
		possible = possible && decisions[i].Reason != headgate.Never
	}
	for i := range decisions {
		if passes || decisions[i].Verdict == headgate.Deny && limit.CountsRefused(&policies[i], possible) {
			which = append(which, i)
		}
	}
	return which, passes
}

// Settle combines the decisions of a group's parts. Part i ends before ops[ends[i]]. If a part
// is refused, the other parts keep their verdicts and lose their Receipts, and their Remaining
// is that without the group. Settle appends to back the receipts that must be returned to the
// store. Policies that count refused attempts keep their units, unless the Kind is TakeIfAll.
func Settle(
	ops []headgate.Op, policies []headgate.Policy, ends []int, decisions []headgate.Decision, back []headgate.Receipt,
) []headgate.Receipt {
	if !refused(decisions) {
		return back
	}
	never := slices.ContainsFunc(decisions, func(d headgate.Decision) bool { return d.Reason == headgate.Never })
	from := 0
	for _, to := range ends {
		// A refused part has taken nothing, and its decisions are final.
		if !refused(decisions[from:to]) {
			back = undo(ops[from:to], policies[from:to], decisions[from:to], !never, back)
		}
		from = to
	}
	return back
}

func refused(decisions []headgate.Decision) bool {
	for i := range decisions {
		if decisions[i].Verdict == headgate.Deny {
			return true
		}
	}
	return false
}

// undo changes the decisions of a part that passed in a refused group. possible reports that no
// Op of the group has the reason Never.
func undo(
	ops []headgate.Op, policies []headgate.Policy, decisions []headgate.Decision, possible bool, back []headgate.Receipt,
) []headgate.Receipt {
	for i := range decisions {
		d := &decisions[i]
		if counted(&ops[i], &policies[i], possible) {
			d.Receipt = headgate.Receipt{}
			continue
		}
		taken := ops[i].Cost // The Remaining of a Peek is also reduced by its cost.
		if !d.Receipt.Empty() {
			taken = d.Receipt.Cost // A grant may have taken less than its cost.
			back = append(back, d.Receipt)
			d.Receipt = headgate.Receipt{}
		}
		d.Remaining = min(d.Limit, d.Remaining+taken)
	}
	return back
}

// counted reports whether the attempt stays counted although the group is refused.
func counted(op *headgate.Op, p *headgate.Policy, possible bool) bool {
	return op.Kind != headgate.Peek && op.Kind != headgate.TakeIfAll && limit.CountsRefused(p, possible)
}
