//go:build soak

package state

import "testing"

// TestSoakTree runs the tree of 10,000 clients.
func TestSoakTree(t *testing.T) {
	p := plan{seed: 1, parents: 4, leaves: 20, clients: 10_000, length: 20 * 60 * sec, redraw: 180 * sec, failure: 0, loss: 0.01, life: 36_000 * sec}
	p.run(t)
	t.Logf("%+v", p)
	for seed := range uint64(10) {
		p := plan{seed: seed, parents: 4, leaves: 20, clients: 2_000, length: 20 * 60 * sec, redraw: 180 * sec, failure: 23 * sec, loss: 0.05, life: 36_000 * sec}
		p.run(t)
		t.Logf("%+v", p)
	}
	p = plan{seed: 2, parents: 4, leaves: 20, clients: 10_000, length: 20 * 60 * sec, redraw: 180 * sec, failure: 120 * sec, loss: 0.01, life: 36_000 * sec}
	p.run(t)
	t.Logf("%+v", p)
}
