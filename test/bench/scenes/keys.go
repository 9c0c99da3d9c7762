package scenes

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/headgate/headgate/test/bench/contest"
)

const keyBytes = len("customer-1234567")

// everyKey gives each key once, each in memory of its own as a program's would be.
func everyKey(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%07d", i)
	}
	return keys
}

// inOrder gives the drawn keys as strings that follow each other in memory. A
// request's key has just been read from the network: the processor has it at hand,
// and the limiter's own memory is all that has to be fetched.
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

// uniform draws every key with the same chance.
func uniform(s Size) []int {
	r := rand.New(rand.NewPCG(7, 11))
	drawn := make([]int, s.Sequence)
	for i := range drawn {
		drawn[i] = r.IntN(s.Keys)
	}
	return drawn
}

// zipf draws the k-th key with a chance in proportion to k^-1.1.
func zipf(s Size) []int {
	z := rand.NewZipf(rand.New(rand.NewPCG(7, 11)), 1.1, 1, uint64(s.Keys-1))
	drawn := make([]int, s.Sequence)
	for i := range drawn {
		drawn[i] = int(z.Uint64())
	}
	return drawn
}

// walk leads each worker over the keys, from a start of its own, and remembers
// how far it has come.
type walk struct {
	keys []string
	// at are the workers' positions, a cache line each.
	at [][8]int
}

func newWalk(keys []string, workers int) *walk {
	w := &walk{keys: keys, at: make([][8]int, workers)}
	for i := range w.at {
		w.at[i][0] = len(keys) / workers * i / contest.Batch * contest.Batch
	}
	return w
}

// again gives the same walk from its start.
func (w *walk) again() *walk { return newWalk(w.keys, len(w.at)) }

// step gives the worker's position and moves it on by n.
func (w *walk) step(worker, n int) int {
	from := w.at[worker][0]
	w.at[worker][0] = (from + n) & (len(w.keys) - 1)
	return from
}
