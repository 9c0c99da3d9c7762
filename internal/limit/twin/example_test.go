package twin_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit/twin"
)

// A test compares a store's answers with the twin's.
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
