package offset_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/store/offset"
)

// A server's clock is read twice: just before its tick and just after.
func Example() {
	e, err := offset.New(offset.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	e.Add(offset.Sample{Before: 5499 * time.Millisecond, After: 5499 * time.Millisecond, Second: 1000})
	e.Add(offset.Sample{Before: 5501 * time.Millisecond, After: 5501 * time.Millisecond, Second: 1001})
	now := 7 * time.Second
	estimate, _ := e.At(now)
	fmt.Println((now + estimate.Offset).Seconds(), "give or take", estimate.Bound)
	// Output: 1002.4985011 give or take 2.649ms
}
