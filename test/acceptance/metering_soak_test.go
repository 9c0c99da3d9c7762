//go:build soak

package acceptance

import (
	"testing"
	"time"
)

// TestSoakMetering: eight processes and a million decisions, and the sums are exact.
func TestSoakMetering(t *testing.T) {
	meterMany(t, meteredLoad{processes: 8, decisions: 1_000_000, customers: 1000})
}

// TestSoakMeteringKilled kills a process twenty times.
func TestSoakMeteringKilled(t *testing.T) { meterKilled(t, 20, 3*time.Second) }
