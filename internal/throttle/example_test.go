package throttle_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/throttle"
)

// A service gets one request at a time. Of two queued requests, the critical one goes first,
// although it came later.
func Example() {
	now := headgate.Instant(0) // A program uses its clock.
	t, err := throttle.New(throttle.Config{Concurrency: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := func(class throttle.Class) *throttle.Request {
		return &throttle.Request{Class: class, Tenant: "shop", Route: "/cart", Deadline: now.Add(time.Second)}
	}
	first, batch, payment := request(throttle.Critical), request(throttle.Sheddable), request(throttle.Critical)
	fmt.Println("first:", t.Arrive(now, first))
	fmt.Println("batch:", t.Arrive(now, batch))
	fmt.Println("payment:", t.Arrive(now, payment))

	now = now.Add(20 * time.Millisecond)
	t.Leave(now, first, throttle.Ended{Work: 5 * time.Millisecond})
	for r, verdict := t.Next(now); r != nil; r, verdict = t.Next(now) {
		fmt.Println(r.Class, verdict)
	}
	// Output:
	// first: allow
	// batch: wait
	// payment: wait
	// critical allow
}

func ExampleParseClass() {
	class, err := throttle.ParseClass("SHEDDABLE_PLUS")
	fmt.Println(class, err)
	_, err = throttle.ParseClass("urgent")
	fmt.Println(err)
	// Output:
	// sheddable_plus <nil>
	// throttle: "urgent" is not a criticality: write critical_plus, critical, sheddable_plus or sheddable
}
