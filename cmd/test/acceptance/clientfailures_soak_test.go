//go:build soak

package acceptance

import "testing"

// TestSoakClientFailures has 100,000 decisions in each scene.
func TestSoakClientFailures(t *testing.T) {
	const decisions = 100_000
	t.Run("clients leave", func(t *testing.T) { clientsLeave(t, decisions) })
	t.Run("a server is killed", func(t *testing.T) { serverDies(t, decisions) })
	t.Run("streams are never read", func(t *testing.T) { neverRead(t, decisions) })
	t.Run("a server is slow", func(t *testing.T) { oneIsSlow(t, decisions) })
}
