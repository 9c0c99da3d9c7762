package limiter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limiter"
)

func ExampleKeyed() {
	perClient, err := limiter.New(headgate.Limit{Count: 2, Per: time.Minute}, limiter.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var d headgate.Decision
	for _, client := range []string{"a", "a", "a", "b"} {
		if err := perClient.Take(context.Background(), client, 1, &d); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(client, d.Verdict, d.Remaining)
	}
	// Output:
	// a allow 1
	// a allow 0
	// a deny 0
	// b allow 1
}

func ExampleSingle() {
	mails, err := limiter.NewSingle(headgate.Limit{Count: 10, Per: time.Hour, Burst: 1}, limiter.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		var d headgate.Decision
		if err := mails.Take(1, &d); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Verdict, d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// allow 0s
	// deny 6m0s
}
