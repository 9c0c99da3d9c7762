package limit_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// A bucket of two units refills one unit in 30 seconds. The caller keeps the state and
// passes the time.
func ExamplePlan() {
	plan, err := limit.Compile(headgate.Policy{
		Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 2, Per: time.Minute},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var bucket limit.Cell
	now := headgate.Instant(time.Hour)
	for _, pause := range []time.Duration{0, 0, 0, 30 * time.Second} {
		now += headgate.Instant(pause)
		var draw limit.Draw
		plan.JudgeCell(&bucket, now, 1, headgate.Take, &draw)
		if draw.Verdict == headgate.Allow {
			plan.TakeCell(&bucket, &draw)
		}
		var d headgate.Decision
		plan.Explain(&draw, &d)
		fmt.Println(d.Verdict, d.Reason, d.RetryAfter)
	}
	// Output:
	// allow within_limit 0s
	// allow within_limit 0s
	// deny over_limit 30s
	// allow within_limit 0s
}
