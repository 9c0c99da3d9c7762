package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestOnLoss tells what the holders of a leaf have when the root fails, 20 s after the end of the lease of the leaf, and
// when the root is back. The safe amount is 3, and the holders want 10 and 2 of 8.
func TestOnLoss(t *testing.T) {
	for loss, want := range map[Loss]string{
		LossPessimistic: "6 2, lost 0 0, back 6 2",
		LossSafe:        "6 2, lost 3 2, back 6 2",
		LossOptimistic:  "6 2, lost 10 2, back 6 2",
	} {
		w := newWorld(t, 1)
		c := config(Resource{Algorithm: MaxMin, Capacity: 8, Safe: 3})
		root := w.node("root", nil, ms, c)
		c.Resources, c.Child, c.OnLoss = nil, true, loss
		c.Lease /= 2
		leaf := w.node("leaf", root, ms, c)
		a, b := w.join(leaf, ms, 10), w.join(leaf, ms, 2)
		amounts := func() string { return fmt.Sprint(a.held.Amount(w.now), " ", b.held.Amount(w.now)) }
		w.run(5 * sec)
		got := amounts()
		root.fail(50 * sec)
		w.run(50 * sec)
		got += ", lost " + amounts()
		w.run(90 * sec)
		if got += ", back " + amounts(); got != want {
			t.Errorf("%v: got %s, want %s", loss, got, want)
		}
	}
}

// TestSafeAmountsCountOnce has a leaf whose parent fails again and again, for different times. Some of its holders cannot reach it
// at times. A holder without a lease uses its safe amount. Without a lease of the parent, all holders together have at most
// the safe amount for each of them.
func TestSafeAmountsCountOnce(t *testing.T) {
	lost := 0
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		w.loss, w.late = 0.05, 100*ms
		c := config(Resource{Algorithm: MaxMin, Capacity: 100, Safe: 3})
		root := w.node("root", nil, 20*ms, c)
		c.Resources, c.Child, c.Lease = nil, true, 15*time.Second
		leaf := w.node("leaf", root, 20*ms, c)
		for i := range 8 {
			w.join(leaf, ms, int64(1+3*i))
		}
		every(w, 20*ms, func() {
			r, sum := leaf.server.resources["db"], int64(0)
			if r == nil {
				return
			}
			for _, c := range w.clients {
				if amount := c.held.Amount(w.now); c.held.Left(w.now) > 0 {
					sum += amount
				} else {
					sum += 3
				}
			}
			switch {
			case !r.lost && sum > 100+8*3:
				t.Fatalf("seed %d: %v: the holders have %d, want at most 124", seed, w.now.Sub(0), sum)
			case r.lost && sum > 8*3:
				t.Fatalf("seed %d: %v: the holders have %d without a parent, want at most 24", seed, w.now.Sub(0), sum)
			case r.lost:
				lost++
			}
		})
		every(w, 7*sec, func() {
			for _, c := range w.clients {
				if delete(leaf.users, c.name); w.rand.IntN(3) > 0 { // Its leases are lost.
					leaf.users[c.name] = c
				}
				c.want(w.rand.Int64N(30))
			}
		})
		every(w, 25*sec, func() { root.fail(headgate.Instant(w.rand.Int64N(int64(40 * sec)))) })
		w.run(200 * sec)
	}
	if lost < 1000 {
		t.Errorf("the leaf has no lease %d times: the test shows nothing", lost)
	}
}

// TestJoinWithoutParent: a holder that joins a leaf without a lease gets its safe amount.
func TestJoinWithoutParent(t *testing.T) {
	w := newWorld(t, 1)
	c := config(Resource{Algorithm: MaxMin, Capacity: 8, Safe: 3})
	root := w.node("root", nil, ms, c)
	c.Resources, c.Child = nil, true
	leaf := w.node("leaf", root, ms, c)
	a := w.join(leaf, ms, 10)
	w.run(5 * sec)
	root.fail(200 * sec)
	w.run(50 * sec)
	b := w.join(leaf, ms, 10)
	w.run(52 * sec)
	if x, y := a.held.Amount(w.now), b.held.Amount(w.now); x != 3 || y != 3 {
		t.Errorf("the holders have %d and %d, want 3 each", x, y)
	}
}

// TestManyResourcesOfAChild: the reports to the parent are bounded, and all resources get there.
func TestManyResourcesOfAChild(t *testing.T) {
	c := config(Resource{Algorithm: MaxMin})
	c.Resources, c.Child = nil, true
	s := start(t, c, 0)
	var out Out
	for i := range 3 {
		r := Report{Holder: fmt.Sprint(i), Seq: 1}
		for j := range MaxClaims {
			r.Claims = append(r.Claims, Claim{Resource: fmt.Sprint(i, "/", j), Wants: 1})
		}
		if err := s.Receive(0, "", &r, &out); err != nil {
			t.Fatal(err)
		}
	}
	seqs := map[uint64]int{}
	for at, ok := s.Next(); ok && at <= 20*ms; at, ok = s.Next() {
		s.Advance(20*ms, &out)
		seqs[out.Up.Seq] += len(out.Up.Claims)
		if len(out.Up.Claims) > MaxClaims {
			t.Errorf("a report has %d claims", len(out.Up.Claims))
		}
		out.Reset()
	}
	if len(seqs) != 3 || seqs[s.seq] != MaxClaims {
		t.Errorf("the reports are %v, want 3 of %d claims", seqs, MaxClaims)
	}
}

// TestSafeAmountsCountOnceBelow has a parent without a lease, and a leaf with the holders. They want 10 and 2, and the safe amount is 3.
// The leaf has 5 and does not lend the unused 1: a holder that cannot reach the leaf uses its own 3.
func TestSafeAmountsCountOnceBelow(t *testing.T) {
	w := newWorld(t, 1)
	c := config(Resource{Algorithm: MaxMin, Capacity: 12, Safe: 3})
	root := w.node("root", nil, ms, c)
	c.Resources, c.Child = nil, true
	leaf := w.node("leaf", w.node("parent", root, ms, length(22500*time.Millisecond, c)), ms, length(15*time.Second, c))
	a, b := w.join(leaf, ms, 10), w.join(leaf, ms, 2)
	w.run(5 * sec)
	root.fail(50 * sec)
	w.run(50 * sec)
	if x, y := a.held.Amount(w.now), b.held.Amount(w.now); x != 3 || y != 2 || !a.held.Lease().Unbacked {
		t.Errorf("the holders have %d and %d without a root, want unbacked leases of 3 and 2", x, y)
	}
	w.run(100 * sec)
	if x, y := a.held.Amount(w.now), b.held.Amount(w.now); x != 10 || y != 2 || a.held.Lease().Unbacked {
		t.Errorf("the holders have %d and %d in the end, want 10 and 2", x, y)
	}
}
