package state

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestLateFirstReport has a new server whose first report of a holder is an old one. The holder has
// 20 by version 7, or 60. The report says 30 by version 5.
func TestLateFirstReport(t *testing.T) {
	for _, holds := range []int64{20, 60} {
		c := config(Resource{Algorithm: MaxMin, Capacity: 100})
		c.Term, c.Restarted = 2, true
		s := start(t, c, 0)
		held := Held{version: Version{1, 7}, amount: holds, end: 10 * sec, open: true}
		receive := func(seq uint64, v Version, amount int64) *Lease {
			var out Out
			claim := Claim{Resource: "db", Wants: 100, Version: v, Holds: amount, Left: 10 * time.Second}
			if err := s.Receive(0, "", &Report{Holder: "a", Seq: seq, Claims: []Claim{claim}}, &out); err != nil {
				t.Fatal(err)
			}
			s.Advance(20*ms, &out)
			if len(out.Leases) == 0 {
				t.Fatalf("no answer to report %d", seq)
			}
			return &out.Leases[len(out.Leases)-1].Lease
		}
		counts := func(want int64) {
			t.Helper()
			if u, _ := s.Usage(0, "db"); u.Ledger != want || u.Ledger+u.Unknown != 100 {
				t.Errorf("the ledger has %d and %d unknown, want %d of 100", u.Ledger, u.Unknown, want)
			}
		}
		held.Sent(0, 2)
		held.sent[0].version = Version{1, 5}
		if lease := receive(2, Version{1, 5}, 30); lease.Amount != 30 || held.Receive(lease) || held.Amount(0) != holds {
			t.Errorf("the holder has %d after the answer %+v to the old report, want %d", held.Amount(0), lease, holds)
		}
		counts(30)
		push := Lease{Resource: "db", Version: Version{2, 9}, Amount: 99}
		if held.Receive(&push) || held.Amount(0) != holds {
			t.Errorf("a push of the new server gives %d, want %d", held.Amount(0), holds)
		}
		held.Sent(0, 3)
		if lease := receive(3, Version{1, 7}, holds); lease.Amount != holds || !held.Receive(lease) || held.Left(0) != 30*time.Second {
			t.Errorf("the holder has %d for %v after %+v, want %d for 30s", held.Amount(0), held.Left(0), lease, holds)
		}
		counts(holds)
		if err := s.Receive(0, "", &Report{Holder: "a", Seq: 4, Claims: []Claim{{Resource: "db", Release: true}}}, &Out{}); err != nil {
			t.Fatal(err)
		}
		counts(0) // The new server has not heard an acknowledgement.
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
