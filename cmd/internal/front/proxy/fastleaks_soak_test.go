//go:build soak

package proxy

import "testing"

// TestSoakCutsLeaveNothing is TestCutsLeaveNothing with 100,000 requests.
func TestSoakCutsLeaveNothing(t *testing.T) { sendCut(t, 100_000) }
