package queue_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/internal/queue"
)

// Two requests wait for departures a second apart. The first one leaves, and the second
// goes at the time of the first.
func Example() {
	pace := queue.PaceOf(headgate.LeakyBucket, headgate.Limit{Count: 1, Per: time.Second})
	q := queue.New(pace)
	first, second := &queue.Waiter{Cost: 1, Owner: "first"}, &queue.Waiter{Cost: 1, Owner: "second"}
	q.Add(first, &queue.Slot{At: 1 * time.Second, Units: 1})
	q.Add(second, &queue.Slot{At: 2 * time.Second, Units: 1})
	q.Leave(first, 0)
	at, _ := q.Next()
	fmt.Println(at, q.Pop(at).Owner)
	// Output: 1s second
}
