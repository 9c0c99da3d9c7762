//go:build soak

package state

import (
	"testing"

	"github.com/headgate/headgate"
)

// TestSoakTree runs a tree of 10,000 clients, without failures and with one every 2 min. Then ten
// seeds have a failure every 23 s.
func TestSoakTree(t *testing.T) {
	for _, failure := range []int{0, 120} {
		p := soaked(1, 10_000)
		p.loss, p.failure = 0.01, sec*headgate.Instant(failure)
		p.run(t)
		t.Logf("%+v", p)
		if p.used < 0.995 || p.misplaced == 0 || p.misplaced > 0.01 {
			t.Errorf("%.2f%% is handed out and %.2f%% misplaced, want at least 99.5%% and at most 1%%", 100*p.used, 100*p.misplaced)
		}
	}
	for seed := range uint64(10) {
		p := soaked(seed, 2_000)
		p.loss, p.failure = 0.05, 23*sec
		p.run(t)
		t.Logf("%+v", p)
	}
}

// TestSoakTreeWithSafeAmounts has many seeds of outages.
func TestSoakTreeWithSafeAmounts(t *testing.T) { withSafeAmounts(t, 500) }

// TestSoakBounds has the bounds of a reduction and of the equilibrium with a tree of 10,000 clients.
func TestSoakBounds(t *testing.T) {
	for seed := range uint64(2) {
		p := soaked(seed, 10_000)
		reduce(t, &p)
		balance(t, &p)
	}
}

func soaked(seed uint64, clients int) plan {
	return plan{seed: seed, parents: 4, leaves: 20, clients: clients, length: 20 * 60 * sec, redraw: 180 * sec, life: 36_000 * sec}
}
