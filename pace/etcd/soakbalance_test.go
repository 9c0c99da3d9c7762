//go:build soak && !race

package etcd

import "testing"

// TestSoakUnbalanced is TestUnbalanced with 20 other streams of calls. The constants of estimate
// were chosen without these streams.
func TestSoakUnbalanced(t *testing.T) {
	for seed := range uint64(20) {
		for _, u := range cases(200 + seed) {
			t.Run(u.name, u.holds)
		}
	}
}
