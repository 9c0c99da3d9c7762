package pace_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// quiet is a logger for examples.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A provider accepts 300 calls a minute from all instances of a program. This instance is the
// third of 3, so it has 100 a minute.
func Example() {
	plan, err := pace.EvenPlan(300, time.Minute, 3, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The clock stands still, one second before the end of a minute, so the output of this example
	// does not change.
	wall := func() headgate.Instant { return headgate.Instant(59 * time.Second) }
	mail, err := pace.New(pace.Config{Provider: "mail", Source: pace.Static(plan), Logger: quiet(), Wall: wall})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mail.Close()
	ctx := context.Background()
	if err := mail.Ready(ctx); err != nil {
		fmt.Println(err)
		return
	}

	// A sixtieth of the minute is left, and with it one of the 100 calls.
	fmt.Println(mail.Acquire(ctx, 100*time.Millisecond))
	err = mail.Acquire(ctx, 100*time.Millisecond)
	var late *pace.TimeoutError
	fmt.Println(errors.As(err, &late), late.Opens.Format("15:04:05"))
	// Output:
	// <nil>
	// true 00:01:00
}

// Ten thousand messages wait without a goroutine for each.
func ExamplePacer_AcquireFunc() {
	plan, err := pace.EvenPlan(1_000_000, time.Second, 1, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	mail, err := pace.New(pace.Config{Provider: "mail", Source: pace.Static(plan), Logger: quiet()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mail.Close()

	sent := make(chan int, 10_000)
	for message := range 10_000 {
		mail.AcquireFunc(1, time.Minute, func(_ headgate.Instant, err error) {
			if err == nil {
				sent <- message // The callback must not block: the channel has capacity for all messages.
			}
		})
	}
	for range 10_000 {
		<-sent
	}
	fmt.Println("sent")
	// Output: sent
}
