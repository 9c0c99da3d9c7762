//go:build soak

package leases_test

import (
	"testing"

	"github.com/headgate/headgate/cmd/test/bench/leases"
)

// TestSoakQuick has a small run, to detect that the benchmark no longer works. It judges no figure.
func TestSoakQuick(t *testing.T) {
	sides := map[string]int64{}
	err := leases.Run(t.Context(), leases.Quick(), func(_ int, f leases.Figure) { sides[f.Side] += f.Answers })
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []string{leases.Echo, leases.Steady, leases.Drifting} {
		if sides[side] == 0 {
			t.Errorf("%s has no answer: %v", side, sides)
		}
	}
}
