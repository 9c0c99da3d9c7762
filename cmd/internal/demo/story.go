package demo

// Act is a number of cycles with the same demand.
type Act struct {
	// Caption says what to look for. It fits into one line of a narrow terminal.
	Caption string
	Cycles  int
	// Demand has the requests of each client per cycle, in the order of Clients.
	Demand []int
}

// Clients returns the names of the clients of Story.
func Clients() []string { return []string{"A", "B", "C", "D"} }

// Story returns the acts of the demo. The clients have equal shares of 40 requests per second,
// and the first acts have the demands of the example in package share. Then one client
// comes back, and another client asks for twenty times its share.
func Story() []Act {
	return []Act{
		{"Four clients ask for 10 a second each. The share of each is 10.", 2, []int{10, 10, 10, 10}},
		{"A asks for 2 and lends to B. B asks for 15 and gets more than 10.", 3, []int{2, 15, 10, 10}},
		{"C asks for 50. B and C borrow what A does not use, by need.", 3, []int{3, 15, 50, 10}},
		{"A is silent, D asks for 5: B and C borrow more. A keeps 1 of its 10.", 4, []int{0, 15, 50, 5}},
		{"A is back, asks for 10 and is served at once: its loans end.", 3, []int{10, 15, 50, 5}},
		{"D asks for 200, twenty times its share. Only D is refused.", 4, []int{10, 10, 10, 200}},
	}
}

// actAt returns the act of a cycle, both counted from 0. After the last act, the story
// starts again.
func actAt(acts []Act, cycle int) int {
	cycle %= length(acts)
	for i := range acts {
		if cycle < acts[i].Cycles {
			return i
		}
		cycle -= acts[i].Cycles
	}
	return 0
}

// length returns the number of cycles of a story.
func length(acts []Act) int {
	all := 0
	for i := range acts {
		all += acts[i].Cycles
	}
	return all
}
