package redis_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
	"github.com/headgate/headgate/store/storetest"
)

// bench is a store with its own clock, server and limit.
type bench struct {
	t      *testing.T
	addr   string
	client rueidis.Client
	clock  *storetest.Clock
	store  *redis.Store
	id     headgate.PolicyID
}

func newBench(t *testing.T, p headgate.Policy) *bench {
	t.Helper()
	b := &bench{t: t, addr: testserver.Start(t).Addr, clock: storetest.NewClock()}
	b.client, b.store = newClient(t, b.addr), newStore(t, b.addr, b.clock.Now)
	b.id = b.prepare(p)
	return b
}

func (b *bench) prepare(p headgate.Policy) headgate.PolicyID {
	b.t.Helper()
	id, err := b.store.Prepare(p)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func apply(tb testing.TB, store headgate.Store, ops ...headgate.Op) []headgate.Decision {
	tb.Helper()
	decisions := make([]headgate.Decision, len(ops))
	if err := store.Apply(tb.Context(), ops, decisions); err != nil {
		tb.Fatalf("Apply(%+v): %v", ops, err)
	}
	return decisions
}

func (b *bench) take(key string, cost int64) headgate.Decision {
	b.t.Helper()
	return apply(b.t, b.store, headgate.Op{Key: key, Policy: b.id, Cost: cost})[0]
}

func (b *bench) giveBack(receipts ...headgate.Receipt) {
	b.t.Helper()
	if err := b.store.Return(b.t.Context(), receipts); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) wantRemaining(what, key string, want int64) {
	b.t.Helper()
	if got := apply(b.t, b.store, headgate.Op{Key: key, Policy: b.id, Kind: headgate.Peek})[0].Remaining; got != want {
		b.t.Errorf("%s: %d units remaining, want %d", what, got, want)
	}
}

// TestReturnedOnceByMany: many callers return one receipt at the same time, and its units are
// returned once.
func TestReturnedOnceByMany(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.SlidingLog} {
		b := newBench(t, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 100, Per: time.Hour}})
		first := b.take("k", 10)
		b.take("k", 80)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 5 {
					if err := b.store.Return(t.Context(), []headgate.Receipt{first.Receipt, first.Receipt}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		b.wantRemaining(a.String(), "k", 20)
	}
}

// TestLostStateTakesNoReceipts: after a server has lost a state, old receipts return no units to
// the new state.
func TestLostStateTakesNoReceipts(t *testing.T) {
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.SlidingLog} {
		b := newBench(t, headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 10, Per: 10 * time.Second}})
		first := b.take("k", 10)
		flush(t, b.client)
		b.clock.Advance(time.Second)
		b.take("k", 10)
		b.giveBack(first.Receipt)
		b.wantRemaining(a.String(), "k", 0)
	}
}
