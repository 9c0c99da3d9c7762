package throttle

import (
	"math"
	"testing"
)

// TestFade compares fade with its definition, below and above the end of the series.
func TestFade(t *testing.T) {
	for _, x := range []float64{0, 1e-12, 1e-6, 0.001, 1.0 / 128, 1.0 / 64, math.Nextafter(1.0/64, 1), 0.1, 1, 40} {
		got, want := fade(x), math.Exp(-x)
		if math.Abs(got-want) > 4e-16*want {
			t.Errorf("fade(%g) is %v, want %v", x, got, want)
		}
	}
	for i := range 100_000 {
		x := float64(i) / 100_000 / 64
		if got, want := fade(x), math.Exp(-x); math.Abs(got-want) > 4e-16 {
			t.Fatalf("fade(%g) is %v, want %v", x, got, want)
		}
	}
}
