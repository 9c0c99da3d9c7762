package script_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/script"
)

// A Batch encodes a call of Decide. The caller sends the call.
func Example() {
	plan, err := script.Compile(headgate.Policy{Limit: headgate.Limit{Count: 500, Per: 2 * time.Second}})
	if err != nil {
		fmt.Println(err)
		return
	}
	names, err := script.NewNames(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	ops := []headgate.Op{{Key: "customer-42", Cost: 1}}
	places := []script.Place{script.PlaceOf(ops[0].Key, ops[0].Window)}

	var batch script.Batch
	batch.Reset(names)
	if err := batch.Add(ops, []*script.Plan{plan}, places, 0); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(batch.Keys(), "in slot", names.Slot(places[0]))
	fmt.Println(len(batch.Args(0, time.Second)), "arguments")
	// Output:
	// [hg3:{oEXrM_h5fzXqfV-tfF4N}:0t16v7k] in slot 6025
	// 4 arguments
}

// Compile refuses a limit that the scripts cannot count exactly. The error names a limit that fits.
func ExampleCompile() {
	_, err := script.Compile(headgate.Policy{
		Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100_000, Per: time.Minute},
	})
	fmt.Println(err)
	// Output: limit: count 100000 is too long a log for Redis: use at most 32768, or sliding_window, or token_bucket
}
