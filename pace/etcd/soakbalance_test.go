//go:build soak && !race

package etcd

import "testing"

// TestSoakUnbalanced is TestUnbalanced with other streams of calls.
func TestSoakUnbalanced(t *testing.T) {
	for seed := range uint64(3) {
		for _, u := range cases(16 + seed) {
			t.Run(u.name, u.holds)
		}
	}
}
