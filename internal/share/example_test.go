package share_test

import (
	"fmt"

	"github.com/headgate/headgate/internal/share"
)

// Four clients share 40 units per cycle. A is idle and D has a small demand. Their unused
// shares are lent to B and C.
func Example() {
	clients := []share.Client{
		{Name: "A", Weight: 1, Demand: 0},
		{Name: "B", Weight: 1, Demand: 15},
		{Name: "C", Weight: 1, Demand: 50},
		{Name: "D", Weight: 1, Demand: 5},
	}
	for _, division := range share.Divisions() {
		terms := share.Terms{Division: division, Capacity: 40, Reservation: 10}
		fmt.Println(division, terms.Divide(clients))
	}
	// Output:
	// loan [1 12 22 5]
	// max_min [1 15 19 5]
}

// Default shares are proportional to the weights and independent of the demands.
func ExampleDefault() {
	fmt.Println(share.Default(100, []share.Client{
		{Name: "car-loan", Weight: 1},
		{Name: "home-loan", Weight: 2},
	}))
	// Output: [33 67]
}

// Ten units are divided among three clients that want more than ten together.
func ExampleScratch() {
	wants := []share.Client{
		{Name: "A", Weight: 1, Demand: 2},
		{Name: "B", Weight: 1, Demand: 6},
		{Name: "C", Weight: 1, Demand: 12},
	}
	var scratch share.Scratch
	fmt.Println("proportional", scratch.Proportional(10, wants))
	fmt.Println("fill        ", scratch.Fill(10, wants))
	// Output:
	// proportional [1 3 6]
	// fill         [2 4 4]
}

// The error names the value and the valid range.
func ExampleTerms_Check() {
	fmt.Println(share.Terms{Capacity: 40, Reservation: 110}.Check())
	// Output: share: reservation 110% is out of range: use 0% to 100%
}
