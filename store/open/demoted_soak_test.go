//go:build soak

package open

import "testing"

// TestFailoversBehindOneAddress has all cases of TestFailoverBehindOneAddress.
func TestFailoversBehindOneAddress(t *testing.T) {
	for _, fallback := range []string{"deny", "allow", "local"} {
		for _, prefetch := range []bool{false, true} {
			for _, secure := range []bool{false, true} {
				s := swap{fallback, prefetch, secure}
				t.Run(s.name(), func(t *testing.T) { failover(t, s) })
			}
		}
	}
}
