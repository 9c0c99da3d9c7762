package backoff_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/headgate/headgate/internal/pace/backoff"
	"github.com/headgate/headgate/internal/pace/feedback"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// A client of any protocol takes a permit, makes the call, and reports the answer.
func Example() {
	plan, err := schedule.Even(1_000_000, time.Second, 1, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	mail, err := pace.New(pace.Config{Provider: "mail", Source: pace.Static(plan), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mail.Close()
	heard := backoff.New(mail)

	if err := mail.Acquire(context.Background(), time.Minute); err != nil {
		fmt.Println(err)
		return
	}
	sent := time.Now()
	status, header := http.StatusTooManyRequests, http.Header{"Retry-After": {"30"}} // the status of the answer
	heard.Observe(feedback.HTTP(status, header, time.Now()), sent)

	fmt.Println(mail.Stats().BrakedTo, "percent")
	fmt.Println(mail.Acquire(context.Background(), time.Second) != nil)
	// Output:
	// 0 percent
	// true
}
