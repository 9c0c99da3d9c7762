package split_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/store/split"
	"github.com/headgate/headgate/store/memory"
)

// Two stores in memory stand for two servers. The limit of a second counts in one, and the limit of a day
// in the other.
func Example() {
	var stores [2]prefetch.Source
	for i := range stores {
		store, err := memory.New(memory.Config{MaxMemory: 16 << 20})
		if err != nil {
			fmt.Println(err)
			return
		}
		stores[i] = prefetch.ByTake(store)
	}
	store, err := split.New(split.Config{Main: stores[0], PerSecond: stores[1]})
	if err != nil {
		fmt.Println(err)
		return
	}
	var ops []headgate.Op
	for _, per := range []time.Duration{time.Second, 24 * time.Hour} {
		id, err := store.Prepare(headgate.Policy{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 3, Per: per}})
		if err != nil {
			fmt.Println(err)
			return
		}
		ops = append(ops, headgate.Op{Policy: id, Key: "client", Cost: 1}) // One group: all or nothing.
	}
	decisions := make([]headgate.Decision, len(ops))
	if err := store.Apply(context.Background(), ops, decisions); err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range decisions {
		fmt.Println(d.Verdict, d.Remaining)
	}
	// Output:
	// allow 2
	// allow 2
}
