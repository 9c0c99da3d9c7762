//go:build soak

package limit

import (
	"math/rand/v2"
	"testing"
)

// TestSoakTwins runs about thirty times the traffic of TestTwins.
func TestSoakTwins(t *testing.T) {
	t.Parallel()
	for _, policy := range append(policies(), bans()...) {
		t.Run(policy.Algorithm.String()+" "+policy.Limit.String(), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(150) {
				play(t, policy, rand.New(rand.NewPCG(seed, 11)), 200)
			}
		})
	}
}
