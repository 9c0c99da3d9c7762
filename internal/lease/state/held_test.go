package state

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestChurn has a leaf whose holders want something else every 30 ms, so no tick sees one of the two alone. Its parent is far away: a report and its answer need up to
// 1.6 s. The lease is renewed all the time, and the newest amount arrives.
func TestChurn(t *testing.T) {
	for _, delay := range []headgate.Instant{80 * ms, 400 * ms, 800 * ms} {
		w := newWorld(t, 1)
		c := config(Resource{Algorithm: MaxMin, Capacity: 1000, Slots: true})
		root := w.node("root", nil, ms, c)
		c.Resources, c.Child, c.Lease = nil, true, 15*time.Second
		leaf := w.node("leaf", root, delay, c)
		a := w.join(leaf, ms, 100)
		wants := int64(100)
		every(w, 30*ms, func() {
			wants = 1100 - wants // 100 or 1000
			a.want(wants)
		})
		w.run(10 * sec)
		least := time.Hour
		every(w, 100*ms, func() { least = min(least, leaf.server.resources["db"].up.held.Left(w.now)) })
		w.run(60 * sec)
		if least < 25*time.Second {
			t.Errorf("%v one way: the lease of the leaf had %v left, want at least 25s of 30s", delay.Sub(0), least)
		}
	}
}

// TestSlowParent has a parent that needs 1.6 s for an answer. The leaf does not repeat its reports meanwhile.
func TestSlowParent(t *testing.T) {
	w := newWorld(t, 1)
	c := config(Resource{Algorithm: MaxMin, Capacity: 1000})
	root := w.node("root", nil, ms, c)
	c.Resources, c.Child, c.Lease = nil, true, 15*time.Second
	leaf := w.node("leaf", root, 800*ms, c)
	w.join(leaf, ms, 100)
	w.run(10 * sec)
	before := w.sent
	w.run(60 * sec)
	if sent := w.sent - before; sent < 30 || sent > 60 {
		t.Errorf("%d messages in 50 s, want about 40: one report of the client and of the leaf in 5 s, and the answers", sent)
	}
}
