package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestGrace follows the leases of one holder. Each row is a lease at a time, and how long the Grace then is.
func TestGrace(t *testing.T) {
	var g Grace
	for _, r := range []struct {
		what    string
		at      headgate.Instant
		term    uint64
		unknown time.Duration
		left    time.Duration
	}{
		{"a server that knows all leases", 0, 1, 0, 0},
		{"the same server cannot begin one", sec, 1, 30 * time.Second, 0},
		{"a new server does not know them", 2 * sec, 2, 30 * time.Second, 30 * time.Second},
		{"time passes", 12 * sec, 2, 20 * time.Second, 20 * time.Second},
		{"the server says the same for ever", 22 * sec, 2, 30 * time.Second, 10 * time.Second},
		{"the server knows more than before", 23 * sec, 2, 4 * time.Second, 4 * time.Second},
		{"the end does not move back", 24 * sec, 2, 30 * time.Second, 3 * time.Second},
		{"the server says the same after the end", 28 * sec, 2, 30 * time.Second, 0},
		{"a new server", 29 * sec, 3, 30 * time.Second, 30 * time.Second},
		{"it knows all leases", 30 * sec, 3, 0, 0},
		{"a number out of range", 31 * sec, 4, 1<<63 - 1, MaxUnknown},
		{"a negative number", 32 * sec, 5, -5, 0},
	} {
		g.Receive(r.at, &Lease{Version: Version{Term: r.term}, Unknown: r.unknown})
		if left := g.Left(r.at); left != r.left {
			t.Errorf("%s: %v left, want %v", r.what, left, r.left)
		}
	}
}

// TestUnknownFor has the leases that a root and a leaf send, at times after their start. The capacity of 100 is unknown for 30 s.
func TestUnknownFor(t *testing.T) {
	for _, r := range []struct {
		what      string
		algorithm Algorithm
		restarted bool
		at        headgate.Instant
		want      time.Duration // rounded down to seconds
	}{
		{"the first server", MaxMin, false, 2 * sec, 0},
		{"the first answers of the next one", MaxMin, true, sec, 30 * time.Second},
		{"time passes", Proportional, true, 20 * sec, 11 * time.Second},
		{"the leases of the earlier server have ended", MaxMin, true, 31 * sec, 0},
		{"static leases do not wait", Static, true, sec, 0},
	} {
		c := config(Resource{Algorithm: r.algorithm, Capacity: 100})
		c.Restarted, c.Term = r.restarted, 2
		s := start(t, c, 0)
		var out Out
		report(t, s, 0, "", "a", 1, 50, &out)
		for at, ok := s.Next(); ok && at <= r.at; at, ok = s.Next() {
			s.Advance(at, &out)
		}
		report(t, s, r.at, "", "a", 2, 50, &out)
		s.Advance(r.at+20*ms, &out)
		last := out.Leases[len(out.Leases)-1].Lease
		if got := last.Unknown.Truncate(time.Second); got != r.want || last.Seq != 2 {
			t.Errorf("%s: %v of %+v, want %v", r.what, last.Unknown, last, r.want)
		}
	}
}

// TestSafeAfterTheOutage is the story of two holders below a leaf, which want 10 and 2 of 8. The safe amount is 3. The root fails for
// 45 s, which is longer than all leases. The next root counts the capacity as unknown for 30 s. Until then, the leaf keeps what it
// divided without a lease, but never what is wanted.
func TestSafeAfterTheOutage(t *testing.T) {
	for loss, want := range map[Loss]string{
		LossPessimistic: "6 2, lost 0 0, root 0 0, late 0 0, all 6 2",
		LossSafe:        "6 2, lost 3 2, root 3 2, late 3 2, all 6 2",
		LossOptimistic:  "6 2, lost 10 2, root 3 2, late 3 2, all 6 2",
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
		root.fail(45 * sec)
		for _, step := range []struct {
			what string
			at   headgate.Instant
		}{{"lost", 49 * sec}, {"root", 57 * sec}, {"late", 79 * sec}, {"all", 81 * sec}} {
			w.run(step.at)
			got += ", " + step.what + " " + amounts()
			if r := leaf.server.resources["db"]; r.lost && leaf.server.unknownFor(r, w.now) != 0 {
				t.Errorf("%v: %s: the leaf divides safe amounts, and lets its holders keep others", loss, step.what)
			}
		}
		if got != want {
			t.Errorf("%v: got %s, want %s", loss, got, want)
		}
	}
}

// TestModesOfLevels has a leaf in one mode below a parent in another one. The root and the parent fail, the parent for a shorter time.
// A pessimistic leaf divides only what its parent gives, also when that is unbacked.
func TestModesOfLevels(t *testing.T) {
	for _, r := range []struct {
		parent, leaf Loss
		want         string
	}{
		{LossSafe, LossSafe, "lost 3, root 3"},
		{LossSafe, LossPessimistic, "lost 3, root 0"},
		{LossPessimistic, LossSafe, "lost 3, root 3"},
		{LossPessimistic, LossPessimistic, "lost 0, root 0"},
		{LossOptimistic, LossPessimistic, "lost 10, root 0"},
	} {
		w := newWorld(t, 1)
		c := config(Resource{Algorithm: MaxMin, Capacity: 12, Safe: 3})
		root := w.node("root", nil, ms, c)
		c.Resources, c.Child, c.OnLoss = nil, true, r.parent
		parent := w.node("parent", root, ms, length(22500*time.Millisecond, c))
		c.OnLoss = r.leaf
		a := w.join(w.node("leaf", parent, ms, length(15*time.Second, c)), ms, 10)
		w.run(5 * sec)
		root.fail(50 * sec)
		w.run(50 * sec)
		got := fmt.Sprint("lost ", a.held.Amount(w.now))
		parent.fail(sec) // It forgets its loss.
		w.run(60 * sec)
		if got += fmt.Sprint(", root ", a.held.Amount(w.now)); got != r.want {
			t.Errorf("a %v leaf below a %v parent: got %s, want %s", r.leaf, r.parent, got, r.want)
		}
	}
}

// TestSafeAmountOfFewHolders has a root that divides its capacity of 9 among three holders as their safe amounts. One of them ends in
// an outage. The next root knows two holders, and says 4. The leaf keeps 3 until the root knows all leases.
func TestSafeAmountOfFewHolders(t *testing.T) {
	w := newWorld(t, 1)
	c := config(Resource{Algorithm: MaxMin, Capacity: 9, Safe: -1})
	root := w.node("root", nil, ms, c)
	c.Resources, c.Child = nil, true
	c.Lease /= 2
	leaf := w.node("leaf", root, ms, c)
	w.join(leaf, ms, 10)
	w.join(leaf, ms, 10)
	w.join(root, ms, 10)
	w.run(10 * sec)
	root.fail(45 * sec)
	w.die(2)
	for at, want := range map[headgate.Instant][2]int64{79 * sec: {3, 3}, 95 * sec: {5, 4}} {
		w.at(at, func() {
			if a, b := w.clients[0].uses(), w.clients[1].uses(); max(a, b) != want[0] || min(a, b) != want[1] {
				t.Errorf("%v: the holders have %d and %d, want %d", at.Sub(0), a, b, want)
			}
		})
	}
	w.run(100 * sec)
	if safe := leaf.server.resources["db"].terms.Safe; safe != 4 {
		t.Errorf("the safe amount is %d in the end, want 4", safe)
	}
}

// TestSafeThroughATree has an outage of all servers, or of some, that is longer than all leases. Each holder that had a lease may
// use its safe amount from the loss until it has its part again. A newcomer has nothing before the root knows all leases. All
// together never have more than the capacity and the safe amounts. Then masters of the root fail every 9 s, and know the leases of
// none before them.
func TestSafeThroughATree(t *testing.T) {
	const capacity, safe, holders = 100, 5, 6
	for what, fails := range map[string][]string{
		"all":               {"root", "parent", "leaf"},
		"root":              {"root"},
		"root and parent":   {"root", "parent"},
		"root and leaf":     {"root", "leaf"},
		"parent and leaf":   {"parent", "leaf"},
		"root, then others": {"root", "late parent", "late leaf"},
		"root, then leaf":   {"root", "late leaf"},
		"root, then parent": {"root", "late parent"},
	} {
		w := newWorld(t, 3)
		c := config(Resource{Algorithm: MaxMin, Capacity: capacity, Safe: safe})
		nodes := map[string]*node{"root": w.node("root", nil, ms, c)}
		c.Resources, c.Child = nil, true
		nodes["parent"] = w.node("parent", nodes["root"], ms, length(22500*time.Millisecond, c))
		nodes["leaf"] = w.node("leaf", nodes["parent"], ms, length(15*time.Second, c))
		for _, at := range []string{"root", "parent", "leaf"} {
			w.join(nodes[at], ms, 40)
			w.join(nodes[at], ms, 40)
		}
		w.run(10 * sec)
		least, sum := int64(100), int64(0)
		every(w, 10*ms, func() {
			least, sum = 100, 0
			for i, c := range w.clients {
				sum += c.uses()
				if i < holders {
					least = min(least, c.uses())
				}
			}
			if least < safe || sum > capacity+safe*int64(len(w.clients)) {
				t.Fatalf("%s: %v: the least amount is %d, the sum is %d", what, w.now.Sub(0), least, sum)
			}
		})
		for _, name := range fails {
			if later, ok := strings.CutPrefix(name, "late "); ok {
				w.at(w.now+50*sec, func() { nodes[later].fail(sec) })
				continue
			}
			nodes[name].fail(60 * sec)
		}
		w.run(72 * sec)
		fresh := w.join(nodes["root"], ms, 40)
		w.run(90 * sec)
		if slices.Contains(fails, "root") && fresh.uses() != 0 {
			t.Errorf("%s: the newcomer has %d", what, fresh.uses())
		}
		w.run(115 * sec)
		if least < 14 || fresh.uses() < 14 {
			t.Errorf("%s: the least amount is %d in the end, and the newcomer has %d, want 14", what, least, fresh.uses())
		}
		nodes["root"].fail(45 * sec)
		w.run(162 * sec)
		for range 12 {
			w.run(w.now + 9*sec)
			nodes["root"].fail(sec)
		}
	}
}
