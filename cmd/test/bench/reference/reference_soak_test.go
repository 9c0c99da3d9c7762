//go:build soak

package reference

import "testing"

// TestSoakReference compares 100,000 answers.
func TestSoakReference(t *testing.T) { compare(t, 100_000) }
