//go:build soak

package acceptance

import (
	"testing"
	"time"
)

// TestSoakTwoVersionsThroughProxies is TestTwoVersionsThroughProxies for all pairs and for
// longer.
func TestSoakTwoVersionsThroughProxies(t *testing.T) {
	for _, v := range versionPairs() {
		t.Run(v.name, func(t *testing.T) { v.play(t, 15*time.Second) })
	}
}
