package state

import (
	"fmt"
	"testing"
)

// TestOnLoss tells what the holders of a leaf have when the root fails, 20 s after the end of the lease of the leaf, and
// when the root is back. The safe amount is 3, and the holders want 10 and 2 of 8.
func TestOnLoss(t *testing.T) {
	for loss, want := range map[Loss]string{
		LossPessimistic: "6 2, lost 0 0, back 6 2",
		LossSafe:        "6 2, lost 4 2, back 6 2",
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
