package demo

// Act is a time in which demand stays the same.
type Act struct {
	// Caption says what to look for, in a line of a narrow terminal.
	Caption string
	// Cycles is how long the act takes.
	Cycles int
	// Demand is what each client asks for in a cycle, in the order of Clients.
	Demand []int
}

// Clients names those of Story.
func Clients() []string { return []string{"A", "B", "C", "D"} }

// Story is the demo: clients with equal shares of 40 requests a second, whose demand
// is that of the example which package share divides; then one of them comes back, and one
// asks for twenty times its share.
func Story() []Act {
	return []Act{
		{"Four clients ask for 10 a second each, and 10 is the share of each.", 2, []int{10, 10, 10, 10}},
		{"A asks for 2. It lends to B, which asks for 15 and so gets above 10.", 3, []int{2, 15, 10, 10}},
		{"C asks for 50. B and C borrow what A leaves, by what they lack.", 3, []int{3, 15, 50, 10}},
		{"A is silent, D asks for 5: B and C borrow more. A keeps 1 of its 10.", 4, []int{0, 15, 50, 5}},
		{"A is back and asks for 10: served at once. What it had lent is its own.", 3, []int{10, 15, 50, 5}},
		{"D asks for 200, twenty times its share. Only D is refused.", 4, []int{10, 10, 10, 200}},
	}
}

// actAt gives the act of a cycle, both counted from 0. After the last act the story
// begins again.
func actAt(acts []Act, cycle int) int {
	all := 0
	for i := range acts {
		all += acts[i].Cycles
	}
	cycle %= all
	for i := range acts {
		if cycle < acts[i].Cycles {
			return i
		}
		cycle -= acts[i].Cycles
	}
	return 0
}
