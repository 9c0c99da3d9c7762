package compensate_test

import (
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/compensate"
)

// Two keys were decided one after the other: the first took a unit, the second was refused. The
// unit is returned.
func Example() {
	ops := []headgate.Op{{Key: "customer-42", Cost: 1}, {Key: "everybody", Cost: 1}}
	decisions := []headgate.Decision{
		{Verdict: headgate.Allow, Limit: 10, Remaining: 6, Receipt: headgate.Receipt{Nonce: 7, Cost: 1}},
		{Verdict: headgate.Deny, Reason: headgate.OverLimit, Limit: 100},
	}
	back := compensate.Settle(ops, make([]headgate.Policy, 2), []int{1, 2}, decisions, nil)
	fmt.Println(len(back), "receipt to return;", decisions[0].Remaining, "of", decisions[0].Limit, "remain")
	// Output: 1 receipt to return; 7 of 10 remain
}
