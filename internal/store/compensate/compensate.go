package compensate

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// Soften changes the modes of a group's ops so that its parts may be decided apart:
// if one of them can never pass, all but bans look and do not take. policies[i] is the policy
// of ops[i]. It reports whether one can never pass.
func Soften(ops []headgate.Op, policies []headgate.Policy) (never bool) {
	for i := range ops {
		ban := policies[i].Algorithm == headgate.Ban
		never = never || !ban && ops[i].Cost > limit.Room(policies[i])
	}
	if !never {
		return false
	}
	for i := range ops {
		if policies[i].Algorithm != headgate.Ban {
			ops[i].Kind = headgate.Peek
		}
	}
	return true
}

// Settle makes the decisions of a group's parts those of the group; ends[i] is the end of
// part i among the ops. If one of them refuses, the others keep their verdicts, have no
// Receipt, and say what is left without them; back, extended, has the receipts to
// return to the store. What counts refused attempts keeps them.
func Settle(
	ops []headgate.Op, policies []headgate.Policy, ends []int, decisions []headgate.Decision, back []headgate.Receipt,
) []headgate.Receipt {
	if !refused(decisions) {
		return back
	}
	from := 0
	for _, to := range ends {
		// A part that refuses has taken nothing, and says so already.
		if !refused(decisions[from:to]) {
			back = undo(ops[from:to], policies[from:to], decisions[from:to], back)
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

// undo lets a part that passes stay behind.
func undo(
	ops []headgate.Op, policies []headgate.Policy, decisions []headgate.Decision, back []headgate.Receipt,
) []headgate.Receipt {
	for i := range decisions {
		d := &decisions[i]
		if counted(&ops[i], &policies[i]) {
			d.Receipt = headgate.Receipt{}
			continue
		}
		taken := ops[i].Cost // By a look too, which says what would be left.
		if !d.Receipt.Empty() {
			taken = d.Receipt.Cost // Of a grant, less than was asked for.
			back = append(back, d.Receipt)
			d.Receipt = headgate.Receipt{}
		}
		d.Remaining = min(d.Limit, d.Remaining+taken)
	}
	return back
}

// counted reports whether the attempt stays counted although the group is refused.
func counted(op *headgate.Op, p *headgate.Policy) bool {
	return op.Kind != headgate.Peek && (p.CountRejected || p.Algorithm == headgate.Ban)
}
