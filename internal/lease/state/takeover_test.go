package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestLateFirstReport has a new server whose first report of a holder is an old one. The holder has
// 20 by version 7, or 60. The report says 30 by version 5. The next report arrives while the server listens, or later.
func TestLateFirstReport(t *testing.T) {
	for _, holds := range []int64{20, 60} {
		for _, next := range []headgate.Instant{500 * ms, 2 * sec} {
			c := config(Resource{Algorithm: MaxMin, Capacity: 100})
			c.Term, c.Restarted = 2, true
			s := start(t, c, 0)
			held := Held{version: Version{1, 7}, amount: holds, end: 10 * sec, open: true}
			var out Out
			receive := func(now headgate.Instant, seq uint64, v Version, amount int64) {
				claim := Claim{Resource: "db", Wants: 100, Version: v, Holds: amount, Left: 8 * time.Second}
				if err := s.Receive(now, "", &Report{Holder: "a", Seq: seq, Claims: []Claim{claim}}, &out); err != nil {
					t.Fatal(err)
				}
				for at, ok := s.Next(); ok && at <= now+150*ms; at, ok = s.Next() {
					s.Advance(at, &out)
				}
				for i := range out.Leases {
					held.Receive(&out.Leases[i].Lease)
				}
				out.Reset()
			}
			has := func(want, counts int64) {
				t.Helper()
				if got := held.Amount(3 * sec); got != want {
					t.Errorf("the holder has %d, want %d", got, want)
				}
				if u, _ := s.Usage(0, "db"); u.Ledger != counts || u.Ledger+u.Unknown != 100 {
					t.Errorf("the ledger has %d and %d unknown, want %d of 100", u.Ledger, u.Unknown, counts)
				}
			}
			held.Sent(0, 2)
			held.sent[0].version = Version{1, 5}
			receive(0, 2, Version{1, 5}, 30)
			has(holds, 0) // The server listens: it only notes what it hears.
			if next > sec {
				receive(sec, 2, Version{1, 5}, 30)
				has(holds, 30)
			}
			push := Lease{Resource: "db", Version: Version{2, 9}, Amount: 99}
			if held.Receive(&push) {
				t.Error("the holder takes a push of the new server")
			}
			held.Sent(next, 3)
			receive(next, 3, Version{1, 7}, holds)
			receive(sec, 3, Version{1, 7}, holds)
			has(holds, holds)
			if left := held.Left(next); left != 30*time.Second {
				t.Errorf("the lease ends in %v, want 30s", left)
			}
			if err := s.Receive(3*sec, "", &Report{Holder: "a", Seq: 4, Claims: []Claim{{Resource: "db", Release: true}}}, &out); err != nil {
				t.Fatal(err)
			}
			has(holds, 0) // The new server has not heard an acknowledgement.
		}
	}
}

// TestFirstReports tells who gets what of 100 when holders say what they hold of an earlier server: one after the other, while
// the server listens. "liar" holds nothing and says 100. "late" reports after that time. The server is trusted.
func TestFirstReports(t *testing.T) {
	type says struct {
		holder, caller string
		holds          int64
	}
	for _, c := range []struct {
		name    string
		reports []says
		want    string
	}{
		{"all of them are right", []says{{"a", "", 70}, {"b", "", 20}}, "map[a:70 b:20] unknown 10"},
		{"small ones lose nothing", []says{{"liar", "", 100}, {"a", "", 30}, {"b", "", 10}}, "map[a:30 b:10 liar:60] unknown 0"},
		{"a large one gets its part", []says{{"liar", "", 100}, {"a", "", 70}}, "map[a:50 liar:50] unknown 0"},
		{"the weights count", []says{{"liar", "", 100}, {"a", "w3", 80}}, "map[a:75 liar:25] unknown 0"},
		{"a server is first", []says{{"liar", "", 100}, {"a", "server", 80}}, "map[a:80 liar:20] unknown 0"},
		{"a late one gets its part", []says{{"a", "", 10}, {"b", "", 10}, {"late", "", 80}}, "map[a:10 b:10 late:33] unknown 47"},
		{"a late one alone", []says{{"late", "", 100}}, "map[late:100] unknown 0"},
		{"a late server", []says{{"a", "", 10}, {"late", "server", 80}}, "map[a:10 late:80] unknown 10"},
	} {
		config := config(Resource{Algorithm: MaxMin, Capacity: 100})
		config.Term, config.Restarted = 2, true
		s := start(t, config, 0)
		var out Out
		for _, r := range c.reports {
			claim := Claim{Resource: "db", Wants: 100, Version: Version{1, 7}, Holds: r.holds, Left: 9 * time.Second}
			if r.caller == "server" {
				claim.Wants, claim.Curve = 0, []Bucket{{1, 1, 100}}
			}
			at := 10 * ms
			if r.holder == "late" {
				s.Advance(2*sec, &out)
				at = 3 * sec
			}
			if err := s.Receive(at, r.caller, &Report{Holder: r.holder, Seq: 1, Claims: []Claim{claim}}, &out); err != nil {
				t.Fatal(err)
			}
		}
		r := s.resources["db"]
		s.settle(r)
		got := map[string]int64{}
		for _, c := range r.claims {
			got[c.holder.name] = c.moved
		}
		if text := fmt.Sprint(got, " unknown ", r.unknown); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
		if s.Advance(4*sec, &out); r.sum+r.unknown > 100 || r.noted != 0 {
			t.Errorf("%s: %d is out and %d unknown of 100, and %d noted", c.name, r.sum, r.unknown, r.noted)
		}
	}
}

// TestTwoServers has two servers without a common term. A holder leaves the one with the newer term:
// the lease of that one ends, and then the other one's follows.
func TestTwoServers(t *testing.T) {
	var held Held
	held.Sent(0, 1)
	held.Receive(&Lease{Version: Version{9, 1}, Amount: 300, Seq: 1, Length: 15 * time.Second})
	other := Lease{Version: Version{4, 1}, Amount: 100, Length: 15 * time.Second}
	for at := 5 * sec; at < 15*sec; at += 5 * sec {
		held.Sent(at, uint64(at))
		if other.Seq = uint64(at); held.Receive(&other) || held.Amount(at) != 300 || held.Left(at) != (15*sec).Sub(at) {
			t.Fatalf("%v: %d for %v, want 300 until 15 s", at.Sub(0), held.Amount(at), held.Left(at))
		}
	}
	held.Sent(15*sec, 3)
	var claim Claim
	if held.Claim(15*sec, &claim); claim.Version != (Version{}) || claim.Holds != 0 {
		t.Errorf("after the end the holder says %+v, want no version", claim)
	}
	if other.Seq = 3; !held.Receive(&other) || held.Amount(16*sec) != 100 {
		t.Errorf("%d after the answer, want the 100 of the other server", held.Amount(16*sec))
	}
}

// TestLearningWithoutHolders has a restarted server below that counts more than its lease and knows no
// holder yet.
func TestLearningWithoutHolders(t *testing.T) {
	c := config(Resource{Algorithm: MaxMin, Capacity: 100})
	c.Callers = map[string]Caller{"server": {Server: true}}
	s := start(t, c, 0)
	var out Out
	send := func(at headgate.Instant, caller, holder string, seq uint64, claim Claim) {
		t.Helper()
		claim.Resource = "db"
		if err := s.Receive(at, caller, &Report{Holder: holder, Seq: seq, Claims: []Claim{claim}}, &out); err != nil {
			t.Fatal(err)
		}
		s.Advance(at+20*ms, &out)
	}
	send(0, "server", "leaf", 1, Claim{Curve: []Bucket{{1, 1, 100}}, Holders: 1})
	send(sec, "", "a", 1, Claim{Wants: 100})
	send(2*sec, "server", "leaf", 2, Claim{Curve: []Bucket{}, Holders: 1, Learning: true})
	if u, _ := s.Usage(2*sec, "db"); u.Ledger > 100 || u.Ledger < 90 {
		t.Errorf("the ledger has %d of 100", u.Ledger)
	}
}

// TestRaisedWhileUnknown: a root starts with a smaller capacity than the one of the earlier process, and a reload raises it before the
// leases of that process have ended. The leases of that process may have the larger capacity.
func TestRaisedWhileUnknown(t *testing.T) {
	c := config(Resource{Algorithm: MaxMin, Capacity: 30})
	c.Term, c.Restarted = 2, true
	s := start(t, c, 0)
	var out Out
	has := func(at headgate.Instant, seq uint64, want, unknown int64) {
		t.Helper()
		report(t, s, at, "", "a", seq, 200, &out)
		s.Advance(at+20*ms, &out)
		if u, _ := s.Usage(at, "db"); u.Granted != want || u.Unknown != unknown {
			t.Errorf("%v: %d granted and %d unknown, want %d and %d", at.Sub(0), u.Granted, u.Unknown, want, unknown)
		}
	}
	configure := func(at headgate.Instant, capacity int64) {
		t.Helper()
		if err := s.Configure(at, []Resource{{Match: "db", Algorithm: MaxMin, Capacity: capacity}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	has(2*sec, 1, 0, 30)
	configure(3*sec, 100)
	has(4*sec, 2, 0, 100)
	configure(5*sec, 50)
	configure(6*sec, 90)
	has(7*sec, 3, 0, 100)
	has(31*sec, 4, 90, 0)
	configure(32*sec, 120)
	has(33*sec, 5, 120, 0)
}

// TestNewHolderAfterARestart: a root knows one holder with 30 of 100, and counts 70 as unknown. A new holder shares the 30, until the
// unknown leases have ended. Alone, it gets nothing.
func TestNewHolderAfterARestart(t *testing.T) {
	for _, known := range []bool{true, false} {
		w := newWorld(t, 1)
		c := config(Resource{Algorithm: MaxMin, Capacity: 100})
		root := w.node("root", nil, 0, c)
		if known {
			w.join(root, ms, 30)
		}
		w.run(5 * sec)
		root.fail(sec)
		w.run(8 * sec)
		fresh := w.join(root, ms, 100)
		w.run(20 * sec)
		if got, want := fresh.held.Amount(w.now), map[bool]int64{true: 15}[known]; got != want {
			t.Errorf("known %v: the new holder has %d, want %d", known, got, want)
		}
		w.run(45 * sec)
		if got, want := fresh.held.Amount(w.now), map[bool]int64{true: 70, false: 100}[known]; got != want {
			t.Errorf("known %v: the new holder has %d in the end, want %d", known, got, want)
		}
	}
}

// TestSumOfHolders tells what a restarted parent counts for a restarted server, of 100, when this says what its holders have: while the
// parent listens, for one second, and later. The server "a" knows what it has: its version is 7.
func TestSumOfHolders(t *testing.T) {
	type says struct {
		at       headgate.Instant
		server   string
		version  uint64
		holds    int64
		holders  int64
		learning bool
	}
	for _, c := range []struct {
		name    string
		reports []says
		want    string
	}{
		{"the sum counts", []says{{0, "b", 0, 60, 2, true}}, "map[b:60] unknown 40"},
		{"another holder is heard", []says{{0, "b", 0, 40, 1, true}, {100 * ms, "b", 0, 60, 2, true}}, "map[b:60] unknown 40"},
		{"another one is heard later", []says{{0, "b", 0, 40, 1, true}, {2 * sec, "b", 0, 60, 2, true}}, "map[b:60] unknown 40"},
		{"the last one is heard when it ends to learn", []says{{0, "b", 0, 40, 1, true}, {2 * sec, "b", 0, 60, 2, false}}, "map[b:60] unknown 40"},
		{"nothing is said", []says{{0, "b", 0, 0, 1, true}}, "map[b:0] unknown 100"},
		{"it does not learn", []says{{0, "b", 0, 60, 2, false}}, "map[b:0] unknown 100"},
		{
			"it has ended to learn",
			[]says{{0, "b", 0, 40, 1, true}, {2 * sec, "b", 0, 40, 1, false}, {3 * sec, "b", 0, 90, 2, false}},
			"map[b:40] unknown 60",
		},
		{"one that knows what it has is first", []says{{0, "b", 0, 80, 2, true}, {0, "a", 7, 80, 2, false}}, "map[a:80 b:20] unknown 0"},
		{"two sums share as their holders would", []says{{0, "b", 0, 90, 3, true}, {0, "c", 0, 90, 1, true}}, "map[b:75 c:25] unknown 0"},
		{"a late sum gets the part of its holders", []says{{0, "a", 7, 10, 1, false}, {2 * sec, "b", 0, 80, 1, true}}, "map[a:10 b:50] unknown 40"},
		{"a known one has what is known", []says{{0, "b", 7, 20, 1, false}, {2 * sec, "b", 0, 60, 2, true}}, "map[b:20] unknown 80"},
	} {
		config := config(Resource{Algorithm: MaxMin, Capacity: 100})
		config.Term, config.Restarted = 2, true
		s := start(t, config, 0)
		var out Out
		for i, r := range c.reports {
			s.Advance(r.at, &out)
			claim := Claim{Resource: "db", Curve: []Bucket{{1, r.holders, 1000}}, Holders: r.holders, Holds: r.holds, Learning: r.learning}
			if r.version > 0 {
				claim.Version, claim.Left = Version{1, r.version}, 9*time.Second
			}
			if err := s.Receive(r.at, "server", &Report{Holder: r.server, Seq: uint64(i + 1), Claims: []Claim{claim}}, &out); err != nil {
				t.Fatal(err)
			}
		}
		r := s.resources["db"]
		s.Advance(max(c.reports[len(c.reports)-1].at, sec), &out)
		got := map[string]int64{}
		for _, c := range r.claims {
			got[c.holder.name] = c.moved
		}
		if text := fmt.Sprint(got, " unknown ", r.unknown); text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
		if r.sum+r.unknown > 100 || r.noted != 0 {
			t.Errorf("%s: %d is out and %d unknown of 100, and %d noted", c.name, r.sum, r.unknown, r.noted)
		}
	}
}

// TestBothRestart: a leaf and its parent restart within a second, or all servers do. So the parent does not know what the leaf had, and
// the sum of the holders of the leaf counts: they keep their leases.
func TestBothRestart(t *testing.T) {
	for _, late := range []headgate.Instant{0, 300 * ms, 900 * ms} {
		for _, all := range []bool{false, true} {
			w := newWorld(t, 1)
			c := config(Resource{Algorithm: MaxMin, Capacity: 100})
			root := w.node("root", nil, ms, c)
			c.Resources, c.Child, c.Lease = nil, true, 15*time.Second
			leaf, other := w.node("leaf", root, 20*ms, c), w.node("other", root, 20*ms, c)
			w.join(leaf, ms, 40)
			w.join(leaf, ms, 20)
			w.join(other, ms, 30)
			w.run(20 * sec)
			least := int64(100)
			every(w, 10*ms, func() {
				w.consistent()
				out := w.out()
				if least = min(least, out); out > 100 {
					t.Fatalf("%v late, all %v, %v: %d is out of 100", late.Sub(0), all, w.now.Sub(0), out)
				}
			})
			again := func() {
				for _, c := range w.clients {
					w.at(w.now+headgate.Instant(w.rand.Int64N(int64(2*sec))), c.refresh) // Its stream has ended.
				}
			}
			root.fail(sec)
			leaf.fail(sec + late)
			w.at(w.now+sec+late, again)
			if all {
				other.fail(sec + late/2)
			}
			w.run(55 * sec)
			if out := w.out(); least < 88 || out != 90 {
				t.Errorf("%v late, all %v: at least %d is out, and %d in the end: want 90", late.Sub(0), all, least, out)
			}
		}
	}
}

// TestAllRestart: all servers of a tree restart every 45 s, on a bad network. The clients keep most of what they have.
func TestAllRestart(t *testing.T) {
	for seed := range uint64(race.Fewer(20, 3)) {
		p := plan{seed: seed, parents: 2, leaves: 4, clients: 48, length: 3 * 60 * sec, redraw: 3600 * sec, failure: 45 * sec, together: true}
		p.loss, p.repeat, p.late, p.many = 0.02, 0.05, 100*ms, int(seed%2)*4
		p.run(t)
		t.Logf("%+v", p)
		if p.used < 0.85 {
			t.Errorf("seed %d: %.1f %% of the wanted capacity is handed out, want 85 %%", seed, 100*p.used)
		}
	}
}
