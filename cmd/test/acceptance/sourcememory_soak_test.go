//go:build soak

package acceptance

import "testing"

// TestSoakDenseSource is TestDenseSourceIsBounded with the whole document.
func TestSoakDenseSource(t *testing.T) { denseSource(t, 1) }
