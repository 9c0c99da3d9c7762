package overload_test

import (
	"fmt"

	"github.com/headgate/headgate/internal/sim/overload"
	"github.com/headgate/headgate/internal/throttle"
)

// A service gets twice the work that it can do. Without a limit it does nearly nothing in time.
func Example() {
	s, _ := overload.Named("bimodal 2")
	open, err := overload.Run(s, 1, true, overload.NewOpen())
	if err != nil {
		fmt.Println(err)
		return
	}
	throttled, err := overload.Run(s, 1, true, overload.NewThrottled(throttle.Config{Concurrency: 16}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("open: below half %v\n", open.Goodput < 0.5)
	fmt.Printf("throttled: above 0.9 %v\n", throttled.Goodput > 0.9)
	// Output:
	// open: below half true
	// throttled: above 0.9 true
}
