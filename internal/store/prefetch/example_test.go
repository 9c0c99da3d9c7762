package prefetch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
)

// A hundred requests of one key cost few calls of the shared store.
func Example() {
	shared := newSource(new(testing.T), nil) // A real program uses store/redis.
	store, err := prefetch.New(prefetch.Config{Source: shared})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	id, err := store.Prepare(headgate.Policy{
		Algorithm: headgate.SlidingLog,
		Limit:     headgate.Limit{Count: 10_000, Per: time.Minute},
		Hold:      300 * time.Millisecond,
		Batch:     50,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	passed := 0
	for range 100 {
		decisions := make([]headgate.Decision, 1)
		op := headgate.Op{Key: "customer-42", Policy: id, Cost: 1}
		if err := store.Apply(context.Background(), []headgate.Op{op}, decisions); err == nil && decisions[0].Verdict == headgate.Allow {
			passed++
		}
	}
	fmt.Println(passed, "passed; fewer than ten calls:", shared.calls.Load() < 10)
	// Output: 100 passed; fewer than ten calls: true
}
