package wheel_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/guard/internal/wheel"
)

func Example() {
	timers := wheel.NewTimers(nil)
	done := make(chan string, 2)
	tea := wheel.Entry{Fire: func() { done <- "tea" }}
	bread := wheel.Entry{Fire: func() { done <- "bread" }}
	timers.Start(&bread, 40*time.Minute)
	timers.Start(&tea, 4*time.Millisecond)
	fmt.Println(<-done)
	fmt.Println("stopped:", timers.Stop(&bread), "waiting:", timers.Len())
	// Output:
	// tea
	// stopped: true waiting: 0
}

// A simulation advances from one Next to the next, in virtual time.
func ExampleWheel() {
	var w wheel.Wheel
	var tea, bread wheel.Entry
	names := map[*wheel.Entry]string{&tea: "tea", &bread: "bread"}
	w.Add(&bread, 40*time.Minute)
	w.Add(&tea, 4*time.Minute)
	for at, ok := w.Next(); ok; at, ok = w.Next() {
		for e := range w.Advance(at) {
			fmt.Println(names[e], at)
		}
	}
	// Output:
	// tea 4m0s
	// bread 40m0s
}
