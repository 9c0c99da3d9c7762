package storetest

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testReturnLast: a headgate.LastReturner returns the last booking of a key, and reports
// true. For any other booking it reports false and changes nothing. The receipt can be
// tried again.
func (s *suite) testReturnLast(t *testing.T) {
	for _, algorithm := range []headgate.Algorithm{headgate.TokenBucket, headgate.LeakyBucket} {
		t.Run(algorithm.String(), func(t *testing.T) {
			b := s.bench(t)
			store, ok := b.store.(headgate.LastReturner)
			if !ok {
				t.Fatal("the store does not tell which booking is the last one")
			}
			id := b.prepare(headgate.Policy{
				Algorithm: algorithm, Limit: headgate.Limit{Count: 7, Per: time.Hour, Burst: 9}, MaxWait: 24 * time.Hour,
			})
			var booked [5]headgate.Decision
			for i := range booked {
				booked[i] = b.apply(headgate.Op{Key: "k", Policy: id, Kind: headgate.Book, Cost: int64(1 + 2*(i%2))})[0]
			}
			b.returnsLast(store, booked[3].Receipt, false)
			b.returnsLast(store, booked[4].Receipt, true)
			b.returnsLast(store, booked[4].Receipt, false)
			b.returnsLast(store, booked[3].Receipt, true)
			b.giveBack(booked[4].Receipt, booked[3].Receipt)
			again := b.apply(headgate.Op{Key: "k", Policy: id, Kind: headgate.Book, Cost: 3})[0]
			if again.Receipt.From != booked[3].Receipt.From || again.Remaining != booked[3].Remaining {
				t.Errorf("after two came back %+v is booked, want as before %+v", again, booked[3])
			}
			b.returnsLast(store, booked[3].Receipt, false) // A later booking keeps its departure.
			b.returnsLast(store, headgate.Receipt{}, false)
			b.giveBack(again.Receipt)
			b.returnsNoneOfFreed(store, headgate.Policy{
				Algorithm: algorithm, Limit: headgate.Limit{Count: 7, Per: time.Second}, MaxWait: time.Second,
			})
		})
	}
}

// returnsNoneOfFreed: a receipt of a freed policy is not the last booking, and no error, as
// for Return. The test prepares and releases so many policies that every store has freed
// the first.
func (b *bench) returnsNoneOfFreed(store headgate.LastReturner, p headgate.Policy) {
	b.t.Helper()
	id := b.prepare(p)
	booked := b.apply(headgate.Op{Key: "freed", Policy: id, Kind: headgate.Book, Cost: 1})[0]
	b.store.Release(id)
	b.clock.Advance(10 * time.Minute)
	for n := range int64(4096) {
		b.store.Release(b.prepare(with(p, 8+n)))
	}
	if again := b.prepare(p); again == id {
		b.t.Error("a policy with expired state was not freed")
	}
	b.returnsLast(store, booked.Receipt, false)
	b.giveBack(booked.Receipt)
}

func (b *bench) returnsLast(store headgate.LastReturner, r headgate.Receipt, want bool) {
	b.t.Helper()
	if got, err := store.ReturnLast(b.t.Context(), &r); got != want || err != nil {
		b.t.Errorf("ReturnLast: %v, %v, want %v", got, err, want)
	}
}
