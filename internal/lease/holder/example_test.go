package holder_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/holder"
	"github.com/headgate/headgate/internal/lease/state"
)

// A holder wants 20 units a second, and 3 units wait. The server gives it a lease of 15.
func Example() {
	h := holder.New(holder.Config{Name: "a random name", OnLoss: holder.Safe, Rand: rand.New(rand.NewPCG(1, 2))})
	if err := h.Claim(0, "db/orders"); err != nil {
		fmt.Println(err)
		return
	}
	h.Connected(0)

	var demand holder.Demand
	demand.Add(0, 20)
	now := headgate.Instant(time.Second)
	h.Want("db/orders", demand.Wants(now, 3))

	var report holder.Report
	fmt.Println(h.Report(now, &report), report.Claims[0].Wants)

	h.Receive(now, []state.Lease{{
		Resource: "db/orders", Version: state.Version{Term: 1, Number: 1}, Amount: 15_000,
		Seq: report.Seq, Length: 15 * time.Second, Refresh: 5 * time.Second, Safe: 1000,
	}})
	fmt.Println(h.Amount(now, "db/orders"))
	fmt.Println(h.Amount(now.Add(15*time.Second), "db/orders"))
	// Output:
	// true 24000
	// 15000
	// 1000
}
