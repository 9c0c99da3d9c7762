package fairshare

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestBorrowersAreServed checks that a lender's unused units reach a steady borrower in the
// cycle after the lender's demand falls, and in later cycles.
func TestBorrowersAreServed(t *testing.T) {
	for _, c := range []struct{ scale, least int }{{1, 13}, {10, 150}} {
		l, err := New(0, Config{
			Capacity: int64(40 * c.scale), Cycle: time.Second, Reservation: 10, Weights: pinned("A B C D"), ForgetAfter: 30, MaxClients: 10,
		})
		if err != nil {
			t.Fatal(err)
		}
		const steps = 10_000
		for cycle := range 10 {
			demands := map[string]int{"A": 2, "B": 15, "C": 10, "D": 10}
			if cycle == 0 {
				demands["A"] = 10
			}
			admitted := map[string]int{}
			for i := range steps {
				now := headgate.Instant(0).Add(time.Duration(cycle)*time.Second + time.Duration(i)*time.Second/steps)
				for name, demand := range demands {
					if demand *= c.scale; (i+1)*demand/steps > i*demand/steps {
						if d, _ := l.Take(now, Request{Client: name}); d.Verdict == headgate.Allow {
							admitted[name]++
						}
					}
				}
			}
			if cycle > 0 && (admitted["B"] < c.least || admitted["C"] < 10*c.scale || admitted["D"] < 10*c.scale) {
				t.Errorf("capacity %d, cycle %d: %v of %v requests are served for each client, want %d for B and all for the others",
					40*c.scale, cycle, admitted, demands, c.least)
			}
		}
	}
}
