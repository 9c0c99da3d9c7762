package share

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/testkit/race"
)

// TestManyAgainstTwins compares divisions among many clients with the twins. Some errors of
// sorts and sums appear only with many clients.
func TestManyAgainstTwins(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	var s Scratch
	for _, mostWeight := range []int64{1, 3, MaxWeight} {
		for _, mostDemand := range []int64{2, 3000, MaxDemand} {
			list := make([]Client, 300)
			for i := range list {
				list[i] = Client{fmt.Sprintf("client-%03d", r.IntN(200)), 1 + r.Int64N(mostWeight), r.Int64N(mostDemand)}
			}
			for _, capacity := range []int64{299, 1_000_003, MaxCapacity} {
				for _, division := range Divisions() {
					terms := Terms{Division: division, Capacity: capacity, Reservation: 7}
					if got, want := s.Divide(terms, list), twinDivide(terms, list); !slices.Equal(got, want) {
						t.Errorf("%+v, weights up to %d, demands up to %d: the sizes differ from the twin's", terms, mostWeight, mostDemand)
					}
				}
			}
		}
	}
}

// TestMost divides the largest capacity among the largest number of clients. Every eighth
// client is idle, and the others have the largest demand. With weights that are
// powers of two, a product that overflows would lose all its bits.
func TestMost(t *testing.T) {
	if race.On {
		return // It has one goroutine.
	}
	for _, weight := range []int64{MaxWeight, 1 << 19} {
		list := make([]Client, MaxClients)
		for i := range list {
			list[i] = Client{Name: fmt.Sprintf("%06d", i), Weight: weight, Demand: MaxDemand}
			if i%8 == 0 {
				list[i].Demand = 0
			}
		}
		for _, division := range Divisions() {
			most(t, list, Terms{Division: division, Capacity: MaxCapacity, Reservation: 10})
		}
		var s Scratch
		for what, split := range map[string]func(int64, []Client) []int64{"Proportional": s.Proportional, "Fill": s.Fill} {
			sizes := split(1<<63-1, list)
			if low, high := slices.Min(sizes[1:8]), slices.Max(sizes[1:8]); total(sizes) != 1<<63-1 || sizes[0] != 0 || high > low+1 {
				t.Errorf("%s: the first sizes are %d and the sum is %d; want 0, equal sizes, and the sum of the amount", what, sizes[:8], total(sizes))
			}
		}
	}
}

func most(t *testing.T, list []Client, terms Terms) {
	t.Helper()
	const fair = MaxCapacity / MaxClients // 2,097,152
	sizes := terms.Divide(list)
	if sum := total(sizes); sum != MaxCapacity {
		t.Errorf("%s: the sum of the sizes is %d, want MaxCapacity", terms.Division, sum)
	}
	for i, size := range sizes {
		want := int64(fair + fair*9/10/7) // Seven borrowers share the loan of one idle client.
		if i%8 == 0 {
			want = fair / 10
		}
		if size < want || size > want+1 {
			t.Fatalf("%s: the size of client %d is %d, want %d or one more", terms.Division, i, size, want)
		}
	}
}

// TestLargest compares the selection with a full sort, including inputs that make the
// partitions uneven.
func TestLargest(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	patterns := map[string]func(i, n int) uint64{
		"random":     func(int, int) uint64 { return r.Uint64() },
		"few values": func(int, int) uint64 { return r.Uint64N(3) },
		"equal":      func(int, int) uint64 { return 4 },
		"rising":     func(i, _ int) uint64 { return uint64(i) },
		"falling":    func(i, n int) uint64 { return uint64(n - i) },
		"organ pipe": func(i, n int) uint64 { return uint64(min(i, n-i)) },
		"saw":        func(i, _ int) uint64 { return uint64(i % 7) },
	}
	for name, pattern := range patterns {
		for _, n := range []int{1, 2, 12, 13, 14, 50, 999} {
			all, list := make([]remainder, n), make([]Client, n)
			for i := range all {
				all[i].at = i
				*[]*uint64{&all[i].w0, &all[i].w1, &all[i].w2}[r.IntN(1+i%3)] = pattern(i, n)
				list[i].Name = fmt.Sprint(r.IntN(n))
			}
			value := func(r remainder) *big.Int { return quad{0, r.w2, r.w1, r.w0}.big() }
			byRank := func(a, b remainder) int {
				return cmp.Or(value(b).Cmp(value(a)), cmp.Compare(list[a.at].Name, list[b.at].Name), cmp.Compare(a.at, b.at))
			}
			sorted := slices.Clone(all)
			slices.SortFunc(sorted, byRank)
			for _, k := range []int{1, n / 3, n - 1} {
				got := slices.Clone(largest(slices.Clone(all), k, list))
				slices.SortFunc(got, byRank)
				if !slices.Equal(got, sorted[:k]) {
					t.Errorf("%s: the result differs from the %d largest of %d remainders", name, k, n)
				}
			}
		}
	}
}

// TestPassesAreFew uses the worst case for the number of passes of water-filling: each
// claim is just above the level at which the previous claim is met.
func TestPassesAreFew(t *testing.T) {
	for _, c := range []struct {
		weight func(i int) uint64
		name   string
	}{
		{func(int) uint64 { return 1 }, "equal weights"},
		{func(i int) uint64 { return MaxWeight >> min(i, 19) }, "halved weights"},
		{func(i int) uint64 { return max(1, MaxWeight/uint64(i+1)) }, "decreasing weights"},
		{func(i int) uint64 { return 1 + uint64(i)%7*100_000 }, "mixed weights"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const n = 10_000
			rest, open := product(MaxCapacity, 1), uint64(0)
			claims := make([]claim, n)
			for i := range claims {
				claims[i] = claim{i, c.weight(i), double{lo: MaxCapacity}}
				open += claims[i].weight
			}
			level, weight := float64(MaxCapacity), open
			for i, reached := 0, 0.0; i < n-1; i++ {
				now := level / float64(weight)
				claims[i].amount = double{lo: 1 + uint64(reached*float64(claims[i].weight))}
				level, weight, reached = level-float64(claims[i].amount.lo), weight-claims[i].weight, now
			}
			passes := 0
			for before := n + 1; len(claims) < before; passes++ {
				before = len(claims)
				claims, rest, open = meetBelow(claims, rest, open)
			}
			t.Logf("%d passes", passes)
			if passes > 240 {
				t.Errorf("%d passes over %d claims, want at most 240", passes, n)
			}
		})
	}
}

// TestScratchAllocatesNothing checks that a Scratch allocates only in its first use.
func TestScratchAllocatesNothing(t *testing.T) {
	var s Scratch
	list := clients(3, 15, 50, 10, 1<<62, 7, 0, 9, 13, 14, 15, 16, 17, 18, 19, 20)
	for name, use := range map[string]func(){
		"Divide, loan":    func() { s.Divide(Terms{Capacity: 1 << 19, Reservation: 10}, list) },
		"Divide, max_min": func() { s.Divide(Terms{Division: MaxMin, Capacity: 1 << 19}, list) },
		"Default":         func() { s.Default(40, list) },
		"Proportional":    func() { s.Proportional(41, list) },
		"Fill":            func() { s.Fill(41, list) },
	} {
		use()
		if n := testing.AllocsPerRun(100, use); n != 0 {
			t.Errorf("%s allocates %v times per call, want 0", name, n)
		}
	}
}
