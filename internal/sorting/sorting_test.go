package sorting_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/sorting"
)

// pair has a key by which it is sorted, and its first place.
type pair struct {
	key, place int
}

func byKey(a, b pair) int { return a.key - b.key }

// TestLikeSlices compares both functions with those of package slices, on lengths with and without equal keys.
func TestLikeSlices(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for length := range 200 {
		given := make([]pair, length)
		for i := range given {
			given[i] = pair{key: random.IntN(1 + length/2), place: i}
		}
		want := slices.Clone(given)
		slices.SortStableFunc(want, byKey)
		stable := slices.Clone(given)
		sorting.StableFunc(stable, byKey)
		if !slices.Equal(stable, want) {
			t.Fatalf("StableFunc of %v: %v, want %v", given, stable, want)
		}
		sorting.Func(given, func(a, b pair) int { return (a.key-b.key)*length + a.place - b.place })
		if !slices.Equal(given, want) {
			t.Fatalf("Func: %v, want %v", given, want)
		}
	}
}
