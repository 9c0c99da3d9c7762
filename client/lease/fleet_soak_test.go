//go:build soak

package client_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSoakOneAndNineteen has the case of TestOneAndNineteen in real time.
func TestSoakOneAndNineteen(t *testing.T) {
	used, small, worst, reports := oneAndNineteen(t, 1, 20*time.Second, time.Minute)
	p99 := quantile(small, 0.99)
	t.Logf("%.1f %% used, waits of the small ones: median %v, p99 %v; %d calls in the worst second; %.0f reports a second",
		100*used, quantile(small, 0.5), p99, worst, reports)
	if used < 0.94 || p99 > 700*time.Millisecond {
		t.Errorf("%.1f %% used and p99 %v, want at least 94 %% and at most 0.7 s", 100*used, p99)
	}
}

// TestSoakSeeds has the case of TestOneAndNineteen with ten other seeds, for five minutes of virtual time.
func TestSoakSeeds(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			used, small, worst, _ := oneAndNineteen(t, 2+seed, 20*time.Second, 5*time.Minute)
			p99 := quantile(small, 0.99)
			t.Logf("seed %d: %.1f %% used, p99 %v, %d calls in the worst second", seed, 100*used, p99, worst)
			if used < 0.94 || p99 > 700*time.Millisecond || worst > 570 {
				t.Errorf("seed %d: %.1f %% used, p99 %v and %d calls, want at least 94 %%, at most 0.7 s and 570", seed, 100*used, p99, worst)
			}
		})
	}
}
