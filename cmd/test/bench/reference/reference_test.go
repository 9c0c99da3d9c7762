package reference

import "testing"

// TestReference compares 3,000 answers.
func TestReference(t *testing.T) { compare(t, 3000) }
