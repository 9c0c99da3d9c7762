package storetest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// A test moves the Clock: a limit that refills in an hour is tested without waiting.
func ExampleClock() {
	clock := storetest.NewClock()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := store.Prepare(headgate.Policy{
		Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1, Per: time.Hour},
	})
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
		fmt.Println(decisions[0].Verdict)
		clock.Advance(30 * time.Minute)
	}
	// Output:
	// allow
	// deny
	// allow
}
