//go:build soak

package acceptance

import "testing"

// TestSoakServerWaysIdle has 10,000 clients of each protocol.
func TestSoakServerWaysIdle(t *testing.T) { idleWays(t, 10_000) }
