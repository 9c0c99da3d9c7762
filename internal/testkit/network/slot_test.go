package network

import (
	"testing"
	"time"
)

// TestSlot checks the size and the time of slots. The size is bounded by pieces and by the
// bandwidth of a fiftieth of a second.
func TestSlot(t *testing.T) {
	for _, c := range []struct {
		story       string
		piece, rate int
		n, want     int
		third       time.Duration // From now to the third slot.
	}{
		{"no bounds", 0, 0, 5000, 5000, 0},
		{"pieces", 3, 0, 5000, 3, 0},
		{"fewer bytes than a piece", 3, 0, 2, 2, 0},
		{"bandwidth", 0, 100_000, 5000, 2000, 60 * time.Millisecond},
		{"both", 500, 100_000, 5000, 500, 15 * time.Millisecond},
		{"a trickle", 0, 10, 5000, 1, 300 * time.Millisecond},
	} {
		t.Run(c.story, func(t *testing.T) {
			l := &Link{changed: make(chan struct{})}
			l.change(func(w *faults) { w.piece, w.rate = c.piece, c.rate })
			start := time.Now()
			var at time.Time
			for range 3 {
				var n int
				if n, at = l.slot(up, c.n); n != c.want {
					t.Errorf("%d bytes: want %d", n, c.want)
				}
			}
			switch late := at.Sub(start); {
			case c.rate == 0 && !at.IsZero():
				t.Errorf("a wait of %v without a bandwidth", late)
			case c.rate != 0 && (late < c.third || late > c.third+time.Second):
				t.Errorf("the third slot is after %v: want %v", late, c.third)
			}
			if !l.free[down].IsZero() {
				t.Errorf("a slot delays the other direction")
			}
		})
	}
}
