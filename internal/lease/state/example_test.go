package state_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// Two holders share 100 units a second. The second one wants little, so the first one has the rest.
func Example() {
	server, err := state.New(state.Config{
		Resources: []state.Resource{{Match: "db/*", Capacity: 100_000, Algorithm: state.MaxMin}},
		Lease:     30 * time.Second, Refresh: 5 * time.Second,
	}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	var out state.Out
	for holder, wants := range map[string]int64{"batch": 500_000, "web": 20_000} {
		report := state.Report{Holder: holder, Seq: 1, Claims: []state.Claim{{Resource: "db/orders", Wants: wants}}}
		if err := server.Receive(0, "", &report, &out); err != nil {
			fmt.Println(err)
		}
	}
	server.Advance(headgate.Instant(20*time.Millisecond), &out)
	for _, delivery := range out.Leases {
		fmt.Println(delivery.Holder, delivery.Lease.Amount, "for", delivery.Lease.Length)
	}
	// Unordered output:
	// batch 80000 for 30s
	// web 20000 for 30s
}
