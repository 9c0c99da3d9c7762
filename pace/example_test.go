package pace_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/schedule"
)

// quiet is a logger for examples.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A provider takes 300 calls a minute from all instances of a program. This is instance
// 2 of 3, so it has 100 a minute.
func Example() {
	plan, err := schedule.Even(300, time.Minute, 3, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The time stands still, a second before a minute is over: so is the example's output.
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

	// Of the minute a sixtieth is left, and of its 100 calls one.
	fmt.Println(mail.Acquire(ctx, 100*time.Millisecond))
	err = mail.Acquire(ctx, 100*time.Millisecond)
	var late *pace.TimeoutError
	fmt.Println(errors.As(err, &late), late.Opens.Format("15:04:05"))
	// Output:
	// <nil>
	// true 00:01:00
}

// Ten thousand messages wait for their turn without a goroutine each.
func ExamplePacer_AcquireFunc() {
	plan, err := schedule.Even(1_000_000, time.Second, 1, 0)
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
				sent <- message // It must not block: the channel has room for all.
			}
		})
	}
	for range 10_000 {
		<-sent
	}
	fmt.Println("sent")
	// Output: sent
}
