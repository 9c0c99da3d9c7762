package guard

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/allocs"
	"github.com/headgate/headgate/internal/testkit/alone"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestTakenAll compares a TakenAll with a list of Taken, for random answers.
func TestTakenAll(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var all TakenAll
	for range 300 {
		sets := [...]*set{{}, {}}
		var want []Taken
		for range rnd.IntN(20) {
			a := randomAnswer(rnd, sets[:])
			taken := a.Taken()
			want = append(want, taken)
			if consumed := all.Add(a); consumed == taken.Empty() {
				t.Fatalf("got took %v, want %+v", consumed, taken)
			}
			if rnd.IntN(8) == 0 {
				all.AddNone()
				want = append(want, Taken{})
			}
		}
		if all.Len() != len(want) {
			t.Fatalf("got %d requests, want %d", all.Len(), len(want))
		}
		for _, i := range rnd.Perm(len(want)) {
			for _, one := range []Taken{want[i], {}} { // A second Take gives nothing.
				if got := all.Take(i); !equalTaken(&got, &one) {
					t.Fatalf("request %d: got %+v, want %+v", i, got, one)
				}
			}
		}
		for _, i := range []int{-1, len(want)} {
			if got := all.Take(i); !got.Empty() {
				t.Errorf("request %d of %d: got %+v", i, len(want), got)
			}
		}
		all.Reset()
	}
}

// TestSizeOfTakenAll: what random answers took is at most as large as Size says, and not much smaller.
func TestSizeOfTakenAll(t *testing.T) {
	if race.On { // The race detector takes memory of its own.
		return
	}
	if !alone.Here(t) {
		return
	}
	const requests = 30_000
	rnd, sets := rand.New(rand.NewPCG(3, 4)), []*set{nil, {}} // Prepared rules are not a part of the size.
	for _, perMessage := range []int{1, 2, 9, 100, 1000} {
		all := make([]TakenAll, requests/perMessage)
		got := allocs.Kept(func() {
			for i := range all {
				for range perMessage {
					all[i].Add(randomAnswer(rnd, sets))
				}
			}
		})
		counted := int64(0)
		for i := range all {
			counted += all[i].Size()
		}
		t.Logf("a request of a message of %d: %d of %d bytes", perMessage, got/requests, counted/requests)
		if got > counted || got < counted/4 {
			t.Errorf("a request of a message of %d takes %d bytes, and counts %d", perMessage, got/requests, counted/requests)
		}
	}
}

// randomAnswer is an answer that took something, or nothing, or is a refusal.
func randomAnswer(rnd *rand.Rand, sets []*set) *Answer {
	a := &Answer{from: sets[rnd.IntN(1+rnd.IntN(2))]}
	for range rnd.IntN(1 + rnd.IntN(4)) {
		r := Result{}
		if rnd.IntN(4) > 0 {
			r.Decision.Receipt = headgate.Receipt{Nonce: 1 + rnd.Uint64N(1000), Cost: rnd.Int64N(10)}
		}
		a.Results = append(a.Results, r)
	}
	switch rnd.IntN(12) {
	case 0:
		a.Verdict = headgate.Deny
	case 1:
		a.waiter = &waiter{}
	case 2:
		a.shadows = []*waiter{{}}
	case 3:
		a.local = &returning{}
	}
	return a
}

// equalTaken compares what two Taken give back.
func equalTaken(a, b *Taken) bool {
	if (a.rest == nil) != (b.rest == nil) || a.Empty() != b.Empty() {
		return false
	}
	if a.rest != nil {
		return a.rest.waiter == b.rest.waiter && len(a.rest.Results) == len(b.rest.Results)
	}
	return a.from == b.from && a.local == b.local && a.one == b.one && slices.Equal(a.more, b.more)
}
