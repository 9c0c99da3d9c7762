package adaptive_test

import (
	"fmt"

	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/internal/throttle"
)

// A service that refuses everything gets one of ten requests.
func Example() {
	search, err := adaptive.NewService("search", adaptive.Config{})
	if err != nil {
		panic(err)
	}
	sent := 0
	for i := range 1000 {
		if search.Begin(0, throttle.Sheddable, float64(i%10)/10, false) == nil {
			sent++ // The service refuses it, so Accepted is not called.
		}
	}
	fmt.Println(sent > 100 && sent < 120)
	// Output: true
}
