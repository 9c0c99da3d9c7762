package compensate_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
)

// TestGrantSaysWhatIsLeft: a part was granted fewer units than its cost. It returns these
// units, and its Remaining counts no more than these.
func TestGrantSaysWhatIsLeft(t *testing.T) {
	policy := headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Second}}
	ops := []headgate.Op{{Key: "a", Cost: 10}, {Key: "b", Cost: 10}}
	granted := headgate.Receipt{Nonce: 1, Cost: 7}
	decisions := []headgate.Decision{
		{Verdict: headgate.Allow, Reason: headgate.WithinLimit, Limit: 10, Receipt: granted},
		{Verdict: headgate.Deny, Reason: headgate.OverLimit, Limit: 10},
	}
	back := compensate.Settle(ops, []headgate.Policy{policy, policy}, []int{1, 2}, decisions, nil)
	if len(back) != 1 || back[0] != granted {
		t.Errorf("%+v goes back, want %+v", back, granted)
	}
	if got := decisions[0].Remaining; got != 7 {
		t.Errorf("%d remain of what 7 were granted of, want 7", got)
	}
}
