//go:build soak

package guard_test

import "testing"

// TestSoakChainOfResumes: a million requests wait for one slot.
func TestSoakChainOfResumes(t *testing.T) { chainOfResumes(t, 1_000_000) }
