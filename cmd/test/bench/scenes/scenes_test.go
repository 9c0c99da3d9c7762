package scenes

import (
	"testing"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// TestKeysAreDrawn checks the distributions of uniform and zipf.
func TestKeysAreDrawn(t *testing.T) {
	size := Size{Keys: 1 << 10, Sequence: 1 << 16}
	most := func(drawn []int) (key, times int) {
		counts := make([]int, size.Keys)
		for _, i := range drawn {
			counts[i]++
		}
		for i, n := range counts {
			if n > times {
				key, times = i, n
			}
		}
		return key, times
	}
	if _, times := most(uniform(size)); times > 2*size.Sequence/size.Keys {
		t.Errorf("uniform: one key was drawn in %d of %d draws, want at most twice the mean", times, size.Sequence)
	}
	if key, times := most(zipf(size)); key != 0 || times < size.Sequence/10 {
		t.Errorf("Zipf: key %d was drawn most, in %d of %d draws, want key 0 in at least a tenth", key, times, size.Sequence)
	}
}

func TestWalk(t *testing.T) {
	keys := inOrder(make([]int, 64))
	w := newWalk(keys, 2)
	if keys[63] != "customer-0000000" {
		t.Errorf("got the last key %q, want customer-0000000", keys[63])
	}
	if a, b := w.step(0, 48), w.step(1, 32); a != 0 || b != 32 {
		t.Errorf("got the first positions %d and %d, want 0 and 32", a, b)
	}
	if a, b := w.step(0, contest.Batch), w.step(1, contest.Batch); a != 48 || b != 0 {
		t.Errorf("got the second positions %d and %d, want 48 and 0", a, b)
	}
}
