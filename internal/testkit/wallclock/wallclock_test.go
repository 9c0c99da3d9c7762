package wallclock

import (
	"testing"
	"time"
)

// TestSet: the wall clock changes, and the monotonic reading stays.
func TestSet(t *testing.T) {
	start := time.Now()
	for _, change := range []time.Duration{-time.Hour, time.Hour} {
		set := Set(start, change)
		if wall, monotonic := set.Round(0).Sub(start.Round(0)), set.Sub(start); wall != change || monotonic != 0 {
			t.Errorf("set by %v: the wall clock has moved by %v, and the monotonic clock by %v", change, wall, monotonic)
		}
	}
}
