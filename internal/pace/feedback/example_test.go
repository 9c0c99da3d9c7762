package feedback_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/headgate/headgate/internal/pace/feedback"
)

func ExampleHTTP() {
	now := time.Now()
	for _, header := range []http.Header{
		{"Ratelimit": {`"calls";r=12;t=30`}},
		{"Ratelimit": {`"calls";r=0;t=30`}},
		{"Headgate-Warning": {`soft-limit; policy="calls"`}},
		{"Ratelimit": {`"calls";r=0;t=NaN`}},
	} {
		a := feedback.HTTP(http.StatusOK, header, now)
		fmt.Println(a.Kind, a.For, a.Percent())
	}
	fmt.Println(feedback.HTTP(http.StatusTooManyRequests, http.Header{"Retry-After": {"5"}}, now))
	// Output:
	// nothing 0s 100
	// spent 30s 0
	// warned 0s 80
	// nothing 0s 100
	// {refused 5s false 429 Retry-After false}
}

// After one refusal, calls stop for 2 seconds, and then speed up step by step.
func ExampleSlower() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 5e8, time.UTC)
	var s feedback.Slower
	s.Observe(feedback.RefusedFor(2*time.Second, "429 Retry-After"), now, now, time.Second)
	for b, next := s.Brake(now); !next.IsZero(); b, next = s.Brake(now) {
		fmt.Printf("%d %% until %s\n", b.Percent, b.Until.Format("05.0"))
		now = next
	}
	// Output:
	// 0 % until 02.5
	// 80 % until 07.5
	// 85 % until 12.5
	// 90 % until 17.5
	// 95 % until 22.5
}
