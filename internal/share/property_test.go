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

// script is a source of numbers: a random generator, or a fuzzer's bytes.
type script interface{ Int64N(n int64) int64 }

// names has names that are not in sorted order.
var names = func() (list []string) {
	for i := range 30 {
		list = append(list, fmt.Sprintf("client-%02d", i*7%30))
	}
	return list
}()

// oneOf returns one of the given numbers at random.
func oneOf(r script, choices ...int64) int64 { return choices[r.Int64N(int64(len(choices)))] }

// draw returns random terms and 1 to most clients. It prefers values with ties and exact
// fits, large values and extremes. Some clients have equal names.
func draw(r script, most int) (Terms, []Client) {
	terms := Terms{
		Division:    Division(r.Int64N(2)),
		Capacity:    oneOf(r, r.Int64N(3), r.Int64N(60), r.Int64N(60), r.Int64N(100_000), r.Int64N(MaxCapacity), MaxCapacity),
		Reservation: int(oneOf(r, 0, 10, 100, r.Int64N(101))),
	}
	list := make([]Client, 1+r.Int64N(int64(most)))
	heaviest, kind := oneOf(r, 1, 1, 4, MaxWeight), r.Int64N(8)
	even := terms.Capacity / int64(len(list))
	for i := range list {
		c := &list[i]
		c.Name = names[i]
		if kind == 1 {
			c.Name = names[i%2]
		}
		c.Weight = 1 + oneOf(r, r.Int64N(heaviest), heaviest-1)
		c.Demand = oneOf(r, 0, even, even+1, r.Int64N(even+1), r.Int64N(2*even+2), r.Int64N(6*even+2))
		if kind == 0 {
			c.Demand = oneOf(r, c.Demand, r.Int64N(MaxDemand), MaxDemand)
		}
	}
	return terms, list
}

// forInputs checks a property on random inputs, and stops at the first failure.
func forInputs(t *testing.T, most int, property func(*rand.Rand, Terms, []Client)) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 1))
	for n := range inputs() {
		terms, list := draw(r, most)
		property(r, terms, list)
		if t.Failed() {
			t.Fatalf("input %d: %+v, %+v", n, terms, list)
		}
	}
}

func total(sizes []int64) int64 {
	var sum int64
	for _, n := range sizes {
		sum += n
	}
	return sum
}

// TestTwins compares every division and split with its exact definition, to the unit.
func TestTwins(t *testing.T) {
	var s Scratch
	forInputs(t, 5, func(_ *rand.Rand, terms Terms, list []Client) { likeTwins(t, &s, terms, list) })
}

func likeTwins(t *testing.T, s *Scratch, terms Terms, list []Client) {
	t.Helper()
	if got, want := s.Divide(terms, list), twinDivide(terms, list); !slices.Equal(got, want) {
		t.Errorf("Divide: got %d, want %d", got, want)
	}
	if got, want := s.Default(terms.Capacity, list), twinRound(twinFair(terms.Capacity, list), list); !slices.Equal(got, want) {
		t.Errorf("Default: got %d, want %d", got, want)
	}
	if got, want := s.Proportional(terms.Capacity, list), twinSplit(false, terms.Capacity, list); !slices.Equal(got, want) {
		t.Errorf("Proportional: got %d, want %d", got, want)
	}
	if got, want := s.Fill(terms.Capacity, list), twinSplit(true, terms.Capacity, list); !slices.Equal(got, want) {
		t.Errorf("Fill: got %d, want %d", got, want)
	}
}

// TestSumIsTheCapacity checks that sizes and default shares add up to the capacity,
// and that none of them is negative.
func TestSumIsTheCapacity(t *testing.T) {
	var s Scratch
	forInputs(t, 30, func(_ *rand.Rand, terms Terms, list []Client) {
		for what, sizes := range map[string][]int64{"sizes": s.Divide(terms, list), "default shares": Default(terms.Capacity, list)} {
			if total(sizes) != terms.Capacity || slices.Min(sizes) < 0 {
				t.Errorf("%s: sizes %d add up to %d, not to the capacity", what, sizes, total(sizes))
			}
		}
	})
}

// TestFloors checks the minimum size of a client, to less than one unit: its reservation,
// and the smaller of its demand and its default share.
func TestFloors(t *testing.T) {
	var s Scratch
	unit := frac(1)
	forInputs(t, 7, func(_ *rand.Rand, terms Terms, list []Client) {
		fair := twinFair(terms.Capacity, list)
		for i, size := range s.Divide(terms, list) {
			above := add(frac(size), unit) // exceeds the floor
			if floor := mul(fair[i], big.NewRat(int64(terms.Reservation), 100)); above.Cmp(floor) <= 0 {
				t.Errorf("the size of %s is %d, want its reservation %s to less than one unit", list[i].Name, size, floor.FloatString(3))
			}
			if floor := lesser(frac(list[i].Demand), fair[i]); above.Cmp(floor) <= 0 {
				t.Errorf("the size of %s is %d, want the smaller of its demand and its default share %s", list[i].Name, size, fair[i].FloatString(3))
			}
			if whole := lesser(frac(list[i].Demand), fair[i]); whole.IsInt() && frac(size).Cmp(whole) < 0 {
				t.Errorf("the size of %s is %d, want at least the whole number %s", list[i].Name, size, whole.RatString())
			}
		}
	})
}

// TestAskingForMoreNeverPays checks that under MaxMin an inflated demand never gives a
// client more useful units.
func TestAskingForMoreNeverPays(t *testing.T) {
	var s Scratch
	forInputs(t, 12, func(r *rand.Rand, terms Terms, list []Client) {
		terms.Division = MaxMin
		i := r.IntN(len(list))
		need := list[i].Demand
		honest := min(s.Divide(terms, list)[i], need)
		list[i].Demand += oneOf(r, 1, r.Int64N(10), r.Int64N(2*terms.Capacity+2), r.Int64N(MaxDemand-need+1), MaxDemand-need)
		if greedy := min(s.Divide(terms, list)[i], need); greedy > honest {
			t.Errorf("%s needs %d: it gets %d, but %d with an inflated demand of %d", list[i].Name, need, honest, greedy, list[i].Demand)
		}
	})
}

// TestAskingForMorePaysUnderLoan shows the weakness of Loan that MaxMin does not have.
func TestAskingForMorePaysUnderLoan(t *testing.T) {
	loan := Terms{Division: Loan, Capacity: 40}
	if honest, greedy := loan.Divide(clients(3, 15, 50, 10))[1], loan.Divide(clients(3, 150, 50, 10))[1]; honest != 11 || greedy != 15 {
		t.Errorf("B needs 15: it gets %d, and %d with a demand of 150; want 11 and 15", honest, greedy)
	}
}

// TestEnoughForAll checks that both divisions are equal when the capacity meets all
// claims. Every demand is met, and the rest goes to the lenders by gap, to less than a unit.
func TestEnoughForAll(t *testing.T) {
	var loan, maxMin Scratch
	tried := 0
	forInputs(t, 7, func(r *rand.Rand, terms Terms, list []Client) {
		for i := range list {
			list[i].Demand = r.Int64N(2*terms.Capacity/int64(len(list)) + 1)
		}
		claims, fair := twinClaims(terms, list), twinFair(terms.Capacity, list)
		left := sub(frac(terms.Capacity), sum(claims))
		if left.Sign() < 0 {
			return
		}
		tried++
		terms.Division = Loan
		sizes := loan.Divide(terms, list)
		terms.Division = MaxMin
		if same := maxMin.Divide(terms, list); !slices.Equal(sizes, same) {
			t.Errorf("sizes %d under loan, %d under max_min; want equal sizes", sizes, same)
		}
		gaps := make([]*big.Rat, len(list))
		for i := range gaps {
			gaps[i] = larger(frac(0), sub(fair[i], claims[i]))
		}
		surplus := sum(gaps)
		for i, size := range sizes {
			if size < list[i].Demand {
				t.Errorf("the size of %s is %d, want at least its demand %d", list[i].Name, size, list[i].Demand)
			}
			want := claims[i]
			if gaps[i].Sign() > 0 {
				want = add(want, mul(left, quo(gaps[i], surplus)))
			}
			if off := sub(frac(size), want); off.Abs(off).Cmp(frac(1)) >= 0 {
				t.Errorf("the size of %s is %d, want %s", list[i].Name, size, want.FloatString(3))
			}
		}
	})
	if tried < inputs()/3 {
		t.Errorf("the capacity met all claims in %d inputs, want at least a third of the inputs", tried)
	}
}

// TestEqualRights checks that clients with equal weights and demands differ by at most one
// unit. The extra unit goes to the name that sorts first. The order of the list has no effect.
func TestEqualRights(t *testing.T) {
	var s, other Scratch
	forInputs(t, 7, func(r *rand.Rand, terms Terms, list []Client) {
		for i := range list {
			list[i].Name = names[i] // unique names
			if i > 0 && r.IntN(2) == 0 {
				list[i].Weight, list[i].Demand = list[i-1].Weight, list[i-1].Demand
			}
		}
		turned := slices.Clone(list)
		r.Shuffle(len(turned), func(i, j int) { turned[i], turned[j] = turned[j], turned[i] })
		all := map[string]func(*Scratch, []Client) []int64{
			"Divide":       func(s *Scratch, list []Client) []int64 { return s.Divide(terms, list) },
			"Default":      func(s *Scratch, list []Client) []int64 { return s.Default(terms.Capacity, list) },
			"Proportional": func(s *Scratch, list []Client) []int64 { return s.Proportional(terms.Capacity, list) },
			"Fill":         func(s *Scratch, list []Client) []int64 { return s.Fill(terms.Capacity, list) },
		}
		for what, divide := range all {
			sizes := sized(list, divide(&s, list))
			if again := sized(turned, divide(&other, turned)); !slices.Equal(sizes, again) {
				t.Errorf("%s: sizes %v, and %v in another order of the clients; want equal sizes", what, sizes, again)
			}
			for i, a := range sizes {
				for _, b := range sizes[i+1:] {
					same := a.client.Weight == b.client.Weight && a.client.Demand == b.client.Demand
					if same && a.size != b.size && a.size != b.size+1 {
						t.Errorf("%s: equal clients %s and %s have sizes %d and %d", what, a.client.Name, b.client.Name, a.size, b.size)
					}
				}
			}
		}
	})
}

type sizedClient struct {
	client Client
	size   int64
}

// sized pairs clients with their sizes, sorted by name.
func sized(list []Client, sizes []int64) []sizedClient {
	pairs := make([]sizedClient, len(list))
	for i := range list {
		pairs[i] = sizedClient{list[i], sizes[i]}
	}
	slices.SortFunc(pairs, func(a, b sizedClient) int { return cmp.Compare(a.client.Name, b.client.Name) })
	return pairs
}

// TestSplitsAddUp checks that both splits hand out the smaller of the amount and the sum of
// the demands, and that no client gets more than its demand.
func TestSplitsAddUp(t *testing.T) {
	var s Scratch
	forInputs(t, 30, func(r *rand.Rand, terms Terms, list []Client) {
		amount := oneOf(r, terms.Capacity, r.Int64N(terms.Capacity+1), r.Int64N(MaxDemand), 1<<63-1)
		wanted, want := new(big.Int), big.NewInt(amount)
		for _, c := range list {
			wanted.Add(wanted, big.NewInt(c.Demand))
		}
		if wanted.Cmp(want) < 0 {
			want = wanted
		}
		splits := map[string]func(int64, []Client) []int64{"Proportional": s.Proportional, "Fill": s.Fill}
		for what, split := range splits {
			grants := split(amount, list)
			if total(grants) != want.Int64() {
				t.Errorf("%s of amount %d: sizes %d add up to %d, want %d", what, amount, grants, total(grants), want)
			}
			for i, n := range grants {
				if n < 0 || n > list[i].Demand {
					t.Errorf("%s: %s has %d, above its demand %d", what, list[i].Name, n, list[i].Demand)
				}
			}
		}
	})
}

// FuzzTwins compares the divisions with the twins, on inputs of the fuzzer.
func FuzzTwins(f *testing.F) {
	f.Add([]byte("\x00\x03\x01\x02\x28\x05\x00\x01\x0a\x02\x0f\x0a\x0a"))
	f.Add([]byte("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Scratch
		terms, list := draw(&written{text}, 9)
		likeTwins(t, &s, terms, list)
		for _, sizes := range [][]int64{s.Divide(terms, list), Default(terms.Capacity, list)} {
			if total(sizes) != terms.Capacity || slices.Min(sizes) < 0 {
				t.Errorf("sizes %d add up to %d, want %d", sizes, total(sizes), terms.Capacity)
			}
		}
		if t.Failed() {
			t.Logf("%+v, %+v", terms, list)
		}
	})
}

// written reads numbers from bytes. It uses only as many bytes as a number below n needs.
type written struct{ text []byte }

func (w *written) Int64N(n int64) int64 {
	var x uint64
	for m := uint64(n - 1); m > 0 && len(w.text) > 0; m >>= 8 {
		x, w.text = x<<8|uint64(w.text[0]), w.text[1:]
	}
	return int64(x % uint64(n))
}

// inputs returns the number of random inputs for each property.
func inputs() int { return race.Fewer(100_000, 2_000) }
