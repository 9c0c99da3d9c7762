package breaker_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/store/breaker"
)

// An unreachable store is called twice. After that, only probes call it.
func Example() {
	b := breaker.New(breaker.Config{Failures: 2, Probe: 100 * time.Millisecond})
	ask := func(now time.Duration, store error) {
		if !b.Allow(now) {
			fmt.Println(now, "refused at once")
			return
		}
		if state, changed := b.Done(now, now+time.Millisecond, store == nil); changed {
			fmt.Println(now, "the breaker is now", state)
		}
	}
	away := errors.New("connection refused")
	ask(0, away)
	ask(10*time.Millisecond, away)
	ask(20*time.Millisecond, nil)
	ask(120*time.Millisecond, nil)
	// Output:
	// 10ms the breaker is now open
	// 20ms refused at once
	// 120ms the breaker is now closed
}
