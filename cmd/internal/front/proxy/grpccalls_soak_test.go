//go:build soak

package proxy

import "testing"

// TestSoakCalls is TestCalls with 10,000 calls on each data plane.
func TestSoakCalls(t *testing.T) {
	for name, fast := range map[string]bool{"standard": false, "fast": true} {
		t.Run(name, func(t *testing.T) { sendCalls(t, fast, 10_000) })
	}
}
