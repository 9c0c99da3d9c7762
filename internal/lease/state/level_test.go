package state

import (
	"testing"

	"github.com/headgate/headgate"
)

// TestSmallChangesWait tells what happens to changes in a resource with many claims: 20 holders want 10 units each of 100, but for one
// that wants 2. Divisions of small changes are 40 ms apart.
func TestSmallChangesWait(t *testing.T) {
	w := newWorld(t, 1)
	w.many = 20
	root := w.node("root", nil, 0, config(Resource{Algorithm: MaxMin, Capacity: 100 * unit}))
	small := w.join(root, ms, 2*unit)
	for range 19 {
		w.join(root, ms, 10*unit)
	}
	large := w.clients[1]
	w.run(2 * sec)
	const level = 98 * unit / 19
	for _, c := range []struct {
		what    string
		client  *client
		wants   int64
		answer  int64            // after a round trip: at least this amount
		free    int64            // and at most so much more
		divided headgate.Instant // the first division, after the report
		amount  int64            // after it
	}{
		{"less is answered at once, and divided later", small, 1_900, 1_900, 0, 40 * ms, 1_900},
		{"above the level, another demand changes nothing", large, 9 * unit, level, 10, 40 * ms, level},
		{"more is paid from what is free, and the rest after the others have acknowledged less", small, 2_500, 1_900, 100, 40 * ms, 2_500},
		{"a large change is divided at the next tick, and then answered", small, 4 * unit, 2_500, 0, 20 * ms, 4 * unit},
	} {
		w.run(w.now + sec)
		r := root.server.resources["db"]
		r.divided = w.now // As if a division had just been.
		c.client.want(c.wants)
		asked := w.now + ms
		w.run(w.now + 3*ms)
		if has := c.client.held.Amount(w.now); has < c.answer || has > c.answer+c.free {
			t.Errorf("%s: the first answer is %d, want %d to %d", c.what, has, c.answer, c.answer+c.free)
		}
		w.run(asked + c.divided - 2*ms)
		if r.divided >= asked {
			t.Errorf("%s: divided after %v, want %v", c.what, r.divided.Sub(asked), c.divided.Sub(0))
		}
		w.run(asked + c.divided + ms)
		if r.divided < asked {
			t.Errorf("%s: not divided after %v", c.what, c.divided.Sub(0))
		}
		w.run(w.now + 200*ms)
		if has := c.client.held.Amount(w.now); has < c.amount || has > c.amount+50 {
			t.Errorf("%s: the holder has %d, want %d", c.what, has, c.amount)
		}
		w.consistent()
	}
}

// TestDrift has demands that change a little with each report. The division is far less frequent than ticks, and nearly as good.
func TestDrift(t *testing.T) {
	const holders = 400
	run := func(many int) (divisions int, worst float64) {
		w := newWorld(t, 3)
		w.many, w.loss = many, 0.01
		capacity := int64(holders * 8 * unit)
		root := w.node("root", nil, 0, config(Resource{Algorithm: MaxMin, Capacity: capacity}))
		for range holders {
			w.join(root, ms, (2+w.rand.Int64N(16))*unit)
		}
		means := make([]int64, holders)
		for i, c := range w.clients {
			means[i] = c.wants
		}
		last := headgate.Instant(0)
		at := 0
		every(w, 10*ms, func() {
			w.clients[at].want(means[at] + means[at]*(w.rand.Int64N(11)-5)/100)
			at = (at + 1) % holders
			if d := root.server.resources["db"].divided; d != last {
				divisions, last = divisions+1, d
			}
		})
		every(w, 100*ms, func() {
			w.consistent()
			if out := w.out(); out > capacity {
				t.Fatalf("many %d: %v: unexpired leases of %d, capacity %d", many, w.now.Sub(0), out, capacity)
			}
			if _, _, misplaced := w.compare(capacity); w.now > 2*sec {
				worst = max(worst, float64(misplaced)/float64(capacity))
			}
		})
		w.run(30 * sec)
		return divisions, worst
	}
	each, exact := run(holders + 1)
	few, near := run(holders)
	t.Logf("%d divisions with at most %.2f %% misplaced, and %d with %.2f %%", each, 100*exact, few, 100*near)
	if few*10 > each*6 || near > exact+0.002 {
		t.Errorf("small changes wait: %d divisions and %.2f %% misplaced, want at most 6/10 of %d and %.2f %%", few, 100*near, each, 100*exact+0.2)
	}
}
