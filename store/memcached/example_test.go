package memcached_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memcached"
)

// A process starts without its server. Until the server answers, decisions are errors and the
// rule's fallback decides.
func Example() {
	store, err := memcached.New(memcached.Config{Servers: []string{"127.0.0.1:1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	perClient, err := store.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Minute}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	ops, decisions := []headgate.Op{{Key: "client 42", Policy: perClient, Cost: 1}}, make([]headgate.Decision, 1)
	if err := store.Apply(ctx, ops, decisions); err != nil {
		fmt.Println("could not decide")
		return
	}
	fmt.Println(decisions[0].Verdict, decisions[0].Remaining)
	// Output:
	// could not decide
}

// Prepare refuses a policy that Memcached cannot keep, and names an alternative.
func ExampleStore_Prepare() {
	store, err := memcached.New(memcached.Config{Servers: []string{"127.0.0.1:11211"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	_, err = store.Prepare(headgate.Policy{
		Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: time.Minute},
	})
	fmt.Println(err)
	// Output:
	// limit: algorithm sliding_log is not kept on Memcached, because its items are read and written whole: use sliding_window (its error is at most one sub-window), or Redis
}
