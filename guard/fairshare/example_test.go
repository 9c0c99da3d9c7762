package fairshare_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/fairshare"
)

// newLimiter returns a limiter for 40 requests in each ten seconds.
func newLimiter(now headgate.Instant) (*fairshare.Limiter, error) {
	return fairshare.New(now, fairshare.Config{
		Capacity: 40, Cycle: 10 * time.Second, Reservation: 10,
		NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: 1000,
	})
}

func ExampleLimiter_Take() {
	now := headgate.Instant(0) // A program uses its clock.
	l, err := newLimiter(now)
	if err != nil {
		fmt.Println(err)
		return
	}
	l.Take(now, fairshare.Request{Client: "home-loan"}) // Two clients are known now.
	l.Take(now, fairshare.Request{Client: "car-loan"})

	now = now.Add(10 * time.Second) // In the next cycle each client has 20 units.
	for range 3 {
		d, receipt := l.Take(now, fairshare.Request{Client: "car-loan", Cost: 8})
		fmt.Println(d.Verdict, d.Reason, d.Limit, d.Remaining)
		if d.Verdict == headgate.Deny {
			fmt.Println("come back in the next cycle:", d.RetryAfter >= 10*time.Second && d.RetryAfter < 15*time.Second)
		}
		_ = receipt // Pass the receipt to Return if the request is not executed.
	}
	d, _ := l.Take(now, fairshare.Request{Client: "home-loan"})
	fmt.Println(d.Verdict, d.Reason, d.Limit, d.Remaining)
	// Output:
	// allow within_limit 20 12
	// allow within_limit 20 4
	// deny over_share 20 4
	// come back in the next cycle: true
	// allow within_limit 20 19
}

func ExampleLimiter_Shares() {
	now := headgate.Instant(0)
	l, err := newLimiter(now)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 15 { // Alternate, so that all four clients become known.
		for _, client := range []string{"A", "B", "C", "D"} {
			l.Take(now, fairshare.Request{Client: client})
		}
	}
	now = now.Add(10 * time.Second)
	for client, n := range map[string]int{"A": 2, "B": 15, "C": 10, "D": 10} {
		for range n {
			l.Take(now, fairshare.Request{Client: client})
		}
	}
	now = now.Add(10 * time.Second)
	s := l.Shares(now)
	fmt.Println("cycle", s.Cycle, "capacity", s.Capacity)
	for _, c := range s.Clients {
		fmt.Println(c.Client, "asked for", c.Demand, "and has", c.Size, "of which borrowed", c.Borrowed, "and lent", c.Lent)
	}
	// Output:
	// cycle 3 capacity 40
	// A asked for 2 and has 5 of which borrowed 0 and lent 5
	// B asked for 15 and has 15 of which borrowed 5 and lent 0
	// C asked for 10 and has 10 of which borrowed 0 and lent 0
	// D asked for 10 and has 10 of which borrowed 0 and lent 0
}
