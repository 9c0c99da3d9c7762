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
			ops[i].Mode = headgate.Peek
		}
	}
	return true
}

// Settle makes the decisions of a group's parts those of the group. If one of them
// refuses, the others say Allow without a Receipt, and what is left without them;
// back, extended, has the receipts to return to the store. What counts refused
// attempts keeps them.
func Settle(ops []headgate.Op, policies []headgate.Policy, decisions []headgate.Decision, back []headgate.Receipt) []headgate.Receipt {
	refused := false
	for i := range decisions {
		refused = refused || decisions[i].Verdict == headgate.Deny
	}
	if !refused {
		return back
	}
	for i := range decisions {
		d := &decisions[i]
		if d.Verdict == headgate.Deny {
			continue
		}
		d.Verdict, d.Reason, d.RetryAfter = headgate.Allow, headgate.WithinLimit, 0
		if counted(&ops[i], &policies[i]) {
			d.Receipt = headgate.Receipt{}
			continue
		}
		d.Remaining = min(d.Limit, d.Remaining+ops[i].Cost)
		if !d.Receipt.Empty() {
			back = append(back, d.Receipt)
			d.Receipt = headgate.Receipt{}
		}
	}
	return back
}

// counted reports whether the attempt stays counted although the group is refused.
func counted(op *headgate.Op, p *headgate.Policy) bool {
	return op.Mode != headgate.Peek && (p.CountRejected || p.Algorithm == headgate.Ban)
}
