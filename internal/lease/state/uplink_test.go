package state

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestVerySlowParent has a parent whose answers take up to 12 s. The leaf gets its lease with the first answer, and few reports are
// under way before it.
func TestVerySlowParent(t *testing.T) {
	for _, row := range []struct {
		oneWay time.Duration
		most   uint64 // reports of the leaf before the first answer
	}{{100 * time.Millisecond, 1}, {time.Second, 3}, {3 * time.Second, 4}, {6 * time.Second, 6}} {
		w := newWorld(t, 1)
		c := config(Resource{Algorithm: MaxMin, Capacity: 8})
		root := w.node("root", nil, ms, c)
		c.Resources, c.Child, c.Lease = nil, true, 15*time.Second
		leaf := w.node("leaf", root, headgate.Instant(row.oneWay), c)
		a := w.join(leaf, ms, 6)
		w.run(headgate.Instant(2*row.oneWay) - ms)
		if seq := leaf.server.seq; seq > row.most {
			t.Errorf("%v one way: %d reports before the first answer, want %d at most", row.oneWay, seq, row.most)
		}
		w.run(headgate.Instant(2*row.oneWay) + 2*sec)
		if got := a.held.Amount(w.now); got != 6 {
			t.Errorf("%v one way: the holder has %d, want 6", row.oneWay, got)
		}
	}
}
