//go:build soak

package acceptance

import "testing"

// TestSoakInventedNames sends ten thousand new names a second for ten cycles.
func TestSoakInventedNames(t *testing.T) {
	for _, reclaim := range []string{"at_once", "next_cycle"} {
		t.Run(reclaim, func(t *testing.T) {
			busy(t)
			invention{names: 10_000, cycles: 10}.run(t, reclaim)
		})
	}
}
