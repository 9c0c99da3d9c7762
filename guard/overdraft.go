package guard

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Values of Rule.Overdraft.
const (
	// DefaultOverdraft lets a key owe one limit.
	DefaultOverdraft = 100
	// UnlimitedOverdraft lets a key owe everything that it has used.
	UnlimitedOverdraft = headgate.MaxUnits
	// NoOverdraft forgives what is used beyond the limit.
	NoOverdraft = -1
)

// overdraft gives the overdraft of the rule in percent, 0 for none.
func (r *Rule) overdraft() int64 {
	switch {
	case r.Overdraft == 0 && r.SettleBody != nil:
		return UnlimitedOverdraft
	case r.Overdraft == 0:
		return DefaultOverdraft
	default:
		return max(r.Overdraft, 0)
	}
}

// owing gives the policy of a limit of the rule with the units that a key may owe.
func (r *Rule) owing(policy headgate.Policy) headgate.Policy {
	if !r.Settles() || policy.Algorithm == headgate.Ban || policy.CountRejected {
		return policy
	}
	const percent = 100
	policy.Overdraft = headgate.MaxUnits
	part := r.overdraft()
	if hi, lo := bits.Mul64(uint64(max(limit.Room(policy), 0)), uint64(part)); part < UnlimitedOverdraft && hi < percent {
		units, _ := bits.Div64(hi, lo, percent)
		policy.Overdraft = int64(min(units, headgate.MaxUnits))
	}
	return policy
}

// checkOverdraft finds an overdraft without effect, or out of range.
func checkOverdraft(r *Rule) error {
	switch {
	case r.Overdraft < NoOverdraft || r.Overdraft > UnlimitedOverdraft:
		return fmt.Errorf("overdraft %d is out of range: use a percentage, NoOverdraft or UnlimitedOverdraft", r.Overdraft)
	case r.Overdraft != 0 && !r.Settles():
		return errors.New("its overdraft has no effect, because no answer states a cost: " +
			"set Settle, Bytes or SettleBody, or leave out Overdraft")
	default:
		return nil
	}
}
