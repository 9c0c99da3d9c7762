package waiters

import "testing"

// TestMeasure checks that the heap per waiter is positive, and at most twice the bar even
// with few waiters.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), Effort{Rounds: 2, Waiters: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Ratios[0].Median * BarBytes; m < 96 || m > 2*BarBytes || r.Rows[0].Median <= 0 {
		t.Errorf("got %.0f bytes and %.0f ns per waiter, want between 96 and %d bytes", m, r.Rows[0].Median, 2*BarBytes)
	}
}
