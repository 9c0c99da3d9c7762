package twin_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit/twin"
)

// A test asks the twin what a store should have answered.
func Example() {
	key := twin.New(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1, Per: time.Minute}})
	now := headgate.Instant(time.Hour)
	for range 3 {
		fmt.Println(key.Do(now, 1, headgate.Take).Verdict)
		now += headgate.Instant(30 * time.Second)
	}
	// Output:
	// allow
	// deny
	// allow
}
