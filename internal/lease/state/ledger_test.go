package state

import (
	"math/rand/v2"
	"testing"
)

// ledgerTwin is the definition: it keeps all amounts that were ever sent, and all
// acknowledgements.
type ledgerTwin struct {
	sent []sentAmount
	acks []sentAmount
}

// count returns the largest of the last acknowledged amount and of all amounts sent since.
func (l *ledgerTwin) count() int64 {
	var newest Version
	var largest int64
	for _, a := range l.acks {
		if newest.Less(a.version) {
			newest = a.version
		}
	}
	base := int64(-1)
	for _, a := range l.acks {
		if a.version == newest && (base < 0 || a.amount < base) {
			base = a.amount
		}
	}
	largest = max(base, 0)
	for _, s := range l.sent {
		if newest.Less(s.version) || s.version == newest && len(l.acks) > 0 {
			largest = max(largest, s.amount)
		}
	}
	return largest
}

// TestLedgerTwin compares the ledger with the list of all messages. Until amounts are merged,
// both are equal. Afterwards, the ledger counts at least as much.
func TestLedgerTwin(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var fast ledger
		var slow ledgerTwin
		for number := uint64(1); number < 20; number++ {
			if fast.n < maxSent || seed%2 == 1 {
				amount := r.Int64N(10)
				fast.send(Version{1, number}, amount, 0)
				slow.sent = append(slow.sent, sentAmount{version: Version{1, number}, amount: amount})
			}
			for r.IntN(3) == 0 { // Acknowledgements of any version, in any order, some repeated.
				sent := slow.sent[r.IntN(len(slow.sent))]
				if newest := slow.sent[len(slow.sent)-1]; r.IntN(4) == 0 {
					sent = newest
				}
				holds := min(sent.amount+r.Int64N(3), max(slow.count(), sent.amount))
				before := fast.count()
				fast.ack(sent.version, holds)
				slow.acks = append(slow.acks, sentAmount{version: sent.version, amount: holds})
				if fast.count() > before {
					t.Fatalf("seed %d: an acknowledgement raises the count from %d to %d", seed, before, fast.count())
				}
			}
			if got, want := fast.count(), slow.count(); got < want || seed%2 == 0 && got != want {
				t.Fatalf("seed %d: the ledger counts %d, the list of all messages %d: %+v, %+v", seed, got, want, fast, slow)
			}
		}
	}
}

// TestLedgerStories has the steps that matter, in words.
func TestLedgerStories(t *testing.T) {
	v := func(n uint64) Version { return Version{1, n} }
	var l ledger
	expect := func(want int64, what string) {
		t.Helper()
		if got := l.count(); got != want {
			t.Errorf("%s: counts %d, want %d", what, got, want)
		}
	}
	l.send(v(1), 100, 0)
	expect(100, "sent 100")
	l.send(v(2), 40, 0)
	expect(100, "a shrink without an acknowledgement")
	l.ack(v(1), 0)
	expect(100, "a holder of 100 says that it holds 0: it may use 100")
	l.ack(v(2), 70)
	expect(70, "a server that shrinks step by step")
	l.ack(v(2), 40)
	expect(40, "the next step")
	l.ack(v(2), 60)
	expect(40, "a delayed step")
	l.ack(v(1), 100)
	expect(40, "a delayed version")
	l.ack(v(9), 0)
	expect(40, "a version that was never sent")
	l.send(v(3), 90, 0)
	expect(90, "sent more")
	l.ack(v(2), 0)
	expect(90, "the older version is not the sent one")
}
