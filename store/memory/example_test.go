package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
)

// A receipt returns the units of a request that was not made.
func ExampleStore_Return() {
	ctx := context.Background()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := store.Prepare(headgate.Policy{
		Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 1, Per: time.Hour},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ops := []headgate.Op{{Key: "client-a", Policy: id, Cost: 1}}
	decisions := make([]headgate.Decision, len(ops))
	for _, back := range []bool{true, false, false} {
		if err := store.Apply(ctx, ops, decisions); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(decisions[0].Verdict)
		if !back {
			continue
		}
		if err := store.Return(ctx, []headgate.Receipt{decisions[0].Receipt}); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// allow
	// allow
	// deny
}
