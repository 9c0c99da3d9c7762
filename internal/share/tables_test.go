package share

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// clients returns clients with the names A, B, C and so on, and the given demands.
func clients(demands ...int64) []Client {
	list := make([]Client, len(demands))
	for i, d := range demands {
		list[i] = Client{Name: string(rune('A' + i)), Weight: 1, Demand: d}
	}
	return list
}

// TestArticle has the four cycles of the article. A, B, C and D share 40 units, with a
// reservation of a tenth of their default share of 10.
func TestArticle(t *testing.T) {
	for _, c := range []struct {
		story   string
		demands []int64
		loan    []int64
		maxMin  []int64
	}{
		{
			"no demand yet: all sizes are equal",
			[]int64{0, 0, 0, 0},
			[]int64{10, 10, 10, 10},
			[]int64{10, 10, 10, 10},
		},
		{
			"A leaves 8 units: B borrows 5, and A keeps 3",
			[]int64{2, 15, 10, 10},
			[]int64{5, 15, 10, 10},
			[]int64{5, 15, 10, 10},
		},
		{
			"A leaves 7 units: B, short of 5, and C, short of 40, share these units",
			[]int64{3, 15, 50, 10},
			[]int64{3, 11, 16, 10},
			[]int64{3, 14, 13, 10},
		},
		{
			"idle A keeps its reservation of 1 and D leaves 5: B and C share 14",
			[]int64{0, 15, 50, 5},
			[]int64{1, 12, 22, 5},
			[]int64{1, 15, 19, 5},
		},
	} {
		t.Run(c.story, func(t *testing.T) {
			for division, want := range map[Division][]int64{Loan: c.loan, MaxMin: c.maxMin} {
				terms := Terms{Division: division, Capacity: 40, Reservation: 10}
				if got := terms.Divide(clients(c.demands...)); !slices.Equal(got, want) {
					t.Errorf("%s: got %d, want %d", division, got, want)
				}
			}
		})
	}
}

// TestEdges has edge cases in which both divisions agree.
func TestEdges(t *testing.T) {
	for _, c := range []struct {
		story       string
		capacity    int64
		reservation int
		clients     []Client
		want        []int64
	}{
		{"no clients and no capacity", 40, 10, nil, nil},
		{"no clients", 0, 10, clients(0, 5), []int64{0, 0}},
		{"no capacity and no demand", 0, 10, clients(0, 0), []int64{0, 0}},
		{"one idle client has the whole capacity", 40, 10, clients(0), []int64{40}},
		{"one client with a demand above the capacity", 40, 10, clients(1 << 60), []int64{40}},
		{"40 units for 3: the extra unit goes to the name that sorts first", 40, 10, clients(0, 0, 0), []int64{14, 13, 13}},
		{"41 units for 3: two extra units", 41, 10, clients(99, 99, 99), []int64{14, 14, 13}},
		{"more clients than units: names that sort first have one unit", 2, 0, clients(9, 9, 9, 9), []int64{1, 1, 0, 0}},
		{"an idle client without a reservation keeps nothing", 2, 0, clients(0, 9, 0, 9), []int64{0, 1, 0, 1}},
		{"a reservation of 100%: no client lends", 40, 100, clients(0, 99, 99, 3), []int64{10, 10, 10, 10}},
		{"a reservation of 50%", 40, 50, clients(0, 99, 99, 10), []int64{5, 13, 12, 10}},
		{"claims equal to the capacity are met", 40, 0, clients(1, 2, 3, 34), []int64{1, 2, 3, 34}},
		{"weight 2 doubles the share", 40, 10, []Client{{"A", 2, 99}, {"B", 1, 99}, {"C", 1, 99}}, []int64{20, 10, 10}},
		{"weight 2 doubles the reservation", 40, 10, []Client{{"A", 2, 0}, {"B", 1, 99}, {"C", 1, 99}}, []int64{2, 19, 19}},
		{"the remaining 16 units are divided by the gaps 9, 4 and 9", 40, 10, clients(0, 6, 0, 16), []int64{8, 9, 7, 16}},
	} {
		for _, division := range Divisions() {
			t.Run(c.story+"/"+division.String(), func(t *testing.T) {
				got := Terms{Division: division, Capacity: c.capacity, Reservation: c.reservation}.Divide(c.clients)
				if !slices.Equal(got, c.want) {
					t.Errorf("got %d, want %d", got, c.want)
				}
			})
		}
	}
}

// TestDefault has default shares, which depend only on the weights.
func TestDefault(t *testing.T) {
	for _, c := range []struct {
		story    string
		capacity int64
		clients  []Client
		want     []int64
	}{
		{"nobody", 40, nil, nil},
		{"equals", 40, clients(7, 0, 99, 3), []int64{10, 10, 10, 10}},
		{"by weight", 40, []Client{{"A", 1, 0}, {"B", 3, 0}}, []int64{10, 30}},
		{"2/3 and 4/3 of a unit: the larger remainder gets the unit", 2, []Client{{"A", 2, 0}, {"B", 4, 0}}, []int64{1, 1}},
		{"equal remainders: the name that sorts first gets the unit", 41, []Client{{"B", 1, 0}, {"A", 1, 0}}, []int64{20, 21}},
		{"equal names: the earlier client gets the unit", 41, []Client{{"A", 1, 0}, {"A", 1, 0}}, []int64{21, 20}},
		{"nothing", 0, clients(1, 2), []int64{0, 0}},
		{"a negative capacity counts as 0", -5, clients(1, 2), []int64{0, 0}},
		{"the most", MaxCapacity, clients(1), []int64{MaxCapacity}},
		{"a capacity above MaxCapacity counts as MaxCapacity", MaxCapacity + 1, clients(1), []int64{MaxCapacity}},
	} {
		t.Run(c.story, func(t *testing.T) {
			if got := Default(c.capacity, c.clients); !slices.Equal(got, c.want) {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestSplits has the results of Proportional and Fill for the same inputs.
func TestSplits(t *testing.T) {
	for _, c := range []struct {
		story              string
		amount             int64
		wants              []Client
		proportional, fill []int64
	}{
		{"nobody wants", 5, nil, nil, nil},
		{"an amount of 0", 0, clients(3, 9), []int64{0, 0}, []int64{0, 0}},
		{"a negative amount counts as 0", -7, clients(3, 9), []int64{0, 0}, []int64{0, 0}},
		{"no demand", 5, clients(0, 0), []int64{0, 0}, []int64{0, 0}},
		{"the amount exceeds the demands", 50, clients(3, 9), []int64{3, 9}, []int64{3, 9}},
		{"just enough", 12, clients(3, 9), []int64{3, 9}, []int64{3, 9}},
		{"half of the demands", 6, clients(3, 9), []int64{2, 4}, []int64{3, 3}},
		{"one unit: the larger demand, or the name that sorts first", 1, clients(3, 9), []int64{0, 1}, []int64{1, 0}},
		{"no client gets more than its demand", 10, clients(1, 1, 90), []int64{0, 0, 10}, []int64{1, 1, 8}},
		{
			"Fill uses the weights", 40,
			[]Client{{"A", 3, 99}, {"B", 1, 99}, {"C", 1, 4}},
			[]int64{20, 19, 1},
			[]int64{27, 9, 4},
		},
		{
			"weights and demands out of range count as the nearest bound", 3,
			[]Client{{"A", 0, 99}, {"B", -1, 99}, {"C", 1, 99}, {"D", 1, -9}},
			[]int64{1, 1, 1, 0},
			[]int64{1, 1, 1, 0},
		},
		{
			"the largest amount, weights and demands", 1<<63 - 1,
			[]Client{{"A", MaxWeight, 1<<63 - 1}, {"B", 1, 1 << 62}, {"C", MaxWeight, 1 << 62}},
			[]int64{3074457345618258603, 3074457345618258602, 3074457345618258602},
			[]int64{4611683712585531611, 4611683712585, 4611683712585531611},
		},
	} {
		t.Run(c.story, func(t *testing.T) {
			var s Scratch
			if got := s.Proportional(c.amount, c.wants); !slices.Equal(got, c.proportional) {
				t.Errorf("Proportional: got %d, want %d", got, c.proportional)
			}
			if got := s.Fill(c.amount, c.wants); !slices.Equal(got, c.fill) {
				t.Errorf("Fill: got %d, want %d", got, c.fill)
			}
		})
	}
}

// TestBeyondBounds checks that a value out of range counts as the nearest bound.
func TestBeyondBounds(t *testing.T) {
	wild := []Client{{"A", 0, -1}, {"B", -1 << 63, 1<<63 - 1}, {"C", 1<<63 - 1, -1 << 63}, {"D", MaxWeight + 1, MaxDemand + 1}}
	tame := []Client{{"A", 1, 0}, {"B", 1, MaxDemand}, {"C", MaxWeight, 0}, {"D", MaxWeight, MaxDemand}}
	for _, c := range []struct{ wild, tame Terms }{
		{Terms{Capacity: 40, Reservation: 10}, Terms{Capacity: 40, Reservation: 10}},
		{Terms{Capacity: -1 << 63, Reservation: 10}, Terms{Reservation: 10}},
		{Terms{Capacity: 1<<63 - 1, Reservation: 10}, Terms{Capacity: MaxCapacity, Reservation: 10}},
		{Terms{Capacity: 40, Reservation: -1}, Terms{Capacity: 40}},
		{Terms{Capacity: 40, Reservation: 101}, Terms{Capacity: 40, Reservation: 100}},
		{Terms{Division: 255, Capacity: 40}, Terms{Division: MaxMin, Capacity: 40}},
	} {
		for _, division := range Divisions() {
			c.wild.Division, c.tame.Division = max(c.wild.Division, division), max(c.tame.Division, division)
			got, want := c.wild.Divide(wild), c.tame.Divide(tame)
			if !slices.Equal(got, want) {
				t.Errorf("%+v: got %d, want %d, the sizes of %+v", c.wild, got, want, c.tame)
			}
		}
	}
}

// TestCheck has the errors for invalid terms.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		terms Terms
		want  string // part of the error; "" for none
	}{
		{Terms{}, ""},
		{Terms{Division: MaxMin, Capacity: MaxCapacity, Reservation: 100}, ""},
		{Terms{Division: 2}, "division 2 is not known: use one of [loan max_min]"},
		{Terms{Capacity: -1}, "capacity -1 is out of range: use 0 to 1099511627776"},
		{Terms{Capacity: MaxCapacity + 1}, "capacity 1099511627777 is out of range: use 0 to 1099511627776"},
		{Terms{Reservation: -1}, "reservation -1% is out of range: use 0% to 100%"},
		{Terms{Reservation: 101}, "reservation 101% is out of range: use 0% to 100%"},
	} {
		t.Run(fmt.Sprintf("%+v", c.terms), func(t *testing.T) {
			got := ""
			if err := c.terms.Check(); err != nil {
				got = err.Error()
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
