package scenes

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

const keyBytes = len("customer-1234567")

// everyKey returns n different keys. Each key has its own memory, as in a real program.
func everyKey(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%07d", i)
	}
	return keys
}

// inOrder returns the drawn keys as strings that are adjacent in memory. The key of a real
// request has just arrived from the network and is in the processor's cache. Adjacent keys
// have the same effect, so that only the memory of the limiter is fetched.
func inOrder(drawn []int) []string {
	var b strings.Builder
	b.Grow(len(drawn) * keyBytes)
	for _, i := range drawn {
		fmt.Fprintf(&b, "customer-%07d", i)
	}
	all := b.String()
	keys := make([]string, len(drawn))
	for i := range keys {
		keys[i] = all[i*keyBytes : (i+1)*keyBytes]
	}
	return keys
}

// uniform draws every key with the same probability.
func uniform(s Size) []int {
	r := rand.New(rand.NewPCG(7, 11))
	drawn := make([]int, s.Sequence)
	for i := range drawn {
		drawn[i] = r.IntN(s.Keys)
	}
	return drawn
}

// zipf draws the k-th key with a probability proportional to k^-1.1.
func zipf(s Size) []int {
	z := rand.NewZipf(rand.New(rand.NewPCG(7, 11)), 1.1, 1, uint64(s.Keys-1))
	drawn := make([]int, s.Sequence)
	for i := range drawn {
		drawn[i] = int(z.Uint64())
	}
	return drawn
}

// walk is the sequence of keys and the position of each worker. The workers begin at
// different positions.
type walk struct {
	keys []string
	// at holds the positions of the workers, each in its own cache line.
	at [][8]int
}

func newWalk(keys []string, workers int) *walk {
	w := &walk{keys: keys, at: make([][8]int, workers)}
	for i := range w.at {
		w.at[i][0] = len(keys) / workers * i / contest.Batch * contest.Batch
	}
	return w
}

// again returns a walk over the same keys that begins at the start.
func (w *walk) again() *walk { return newWalk(w.keys, len(w.at)) }

// step returns the position of the worker and advances the position by n.
func (w *walk) step(worker, n int) int {
	from := w.at[worker][0]
	w.at[worker][0] = (from + n) & (len(w.keys) - 1)
	return from
}
