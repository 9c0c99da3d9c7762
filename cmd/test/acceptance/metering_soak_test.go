//go:build soak

package acceptance

import (
	"testing"
	"time"
)

// TestSoakMetering: eight processes and a million decisions, an endpoint that fails, answers twice and is slow, and the sums are
// exact.
func TestSoakMetering(t *testing.T) {
	meterMany(t, meteredLoad{processes: 8, decisions: 1_000_000, customers: 1000, slow: 500 * time.Millisecond})
}

// TestSoakMeteringKilled kills a process twenty times, at different times after the last write of the journal. At most the last
// second is missing.
func TestSoakMeteringKilled(t *testing.T) {
	for part := range 4 {
		if missing := meterKilled(t, 5, time.Second, time.Duration(part)*300*time.Millisecond); missing > time.Second {
			t.Errorf("%v before a kill are missing, want at most 1s", missing)
		}
	}
}
