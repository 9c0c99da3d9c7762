package waiters

import "testing"

// TestMeasure shows that a waiter costs something, and no more than twice the bar even where
// few wait.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), Effort{Rounds: 2, Waiters: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Ratios[0].Median * BarBytes; m < 96 || m > 2*BarBytes || r.Rows[0].Median <= 0 {
		t.Errorf("%.0f bytes each, %.0f ns: want between 96 and %d bytes", m, r.Rows[0].Median, 2*BarBytes)
	}
}
