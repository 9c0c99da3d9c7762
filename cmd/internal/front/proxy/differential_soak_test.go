//go:build soak

package proxy

import "testing"

// TestSoakRulesAndServicesSeeTheSame is TestRulesAndServicesSeeTheSame with 500 random
// values of each kind.
func TestSoakRulesAndServicesSeeTheSame(t *testing.T) { compareServices(t, 500) }
