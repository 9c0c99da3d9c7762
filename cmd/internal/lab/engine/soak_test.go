//go:build soak

package engine_test

import "testing"

// TestSoakEngineIsTheGuard is TestEngineIsTheGuard with a million requests.
func TestSoakEngineIsTheGuard(t *testing.T) { engineIsTheGuard(t, 10*mostRandom, 7) }
