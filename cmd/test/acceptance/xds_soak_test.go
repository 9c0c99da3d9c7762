//go:build soak

package acceptance

import (
	"testing"
	"time"
)

// TestSoakManagement repeats a refused configuration for 30 s. The server is gone for 10 s, and for 2 minutes.
func TestSoakManagement(t *testing.T) {
	for _, gone := range []time.Duration{10 * time.Second, 2 * time.Minute} {
		followManagement(t, xdsTimes{refused: 30 * time.Second, gone: gone, repaired: 6 * time.Second, returned: 2 * time.Second})
	}
}
