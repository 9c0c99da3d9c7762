package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
)

// The store decides requests against a prepared policy. Package limiter does this for
// one limit, and package guard does this for the rules of a file.
func ExampleStore() {
	start := headgate.Instant(time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	var store headgate.Store
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: func() headgate.Instant { return start }})
	if err != nil {
		fmt.Println(err)
		return
	}
	twoAMinute := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 2, Per: time.Minute}}
	id, err := store.Prepare(twoAMinute)
	if err != nil {
		fmt.Println(err)
		return
	}
	ops := []headgate.Op{{Key: "client-a", Policy: id, Cost: 1}}
	decisions := make([]headgate.Decision, len(ops))
	for range 3 {
		if err := store.Apply(context.Background(), ops, decisions); err != nil {
			fmt.Println(err)
			return
		}
		d := &decisions[0]
		fmt.Println(d.Verdict, d.Reason, d.RetryAfter)
	}
	// Output:
	// allow within_limit 0s
	// allow within_limit 0s
	// deny over_limit 1m0s
}
