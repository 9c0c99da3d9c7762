//go:build soak

package stages

import "testing"

// TestSoakSlots sends 10,000 requests by each front and protocol.
func TestSoakSlots(t *testing.T) {
	slotsOfHTTP(t, 10_000)
	slotsOfGRPC(t, 10_000, serveCalls)
	slotsOfGRPC(t, 10_000, serveCallsOverHTTP)
}
