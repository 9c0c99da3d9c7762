package redis_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
	"github.com/headgate/headgate/store/storetest"
)

// bench is a store with a clock on a server of its own, and one limit.
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
	if got := apply(b.t, b.store, headgate.Op{Key: key, Policy: b.id, Mode: headgate.Peek})[0].Remaining; got != want {
		b.t.Errorf("%s: %d remain, want %d", what, got, want)
	}
}

// TestReturnedTokensAreBounded: whatever is taken and returned in whatever order,
// what was not returned stays within burst + rate x time over every interval.
func TestReturnedTokensAreBounded(t *testing.T) {
	for _, l := range []headgate.Limit{{Count: 10, Per: time.Second}, {Count: 7, Per: time.Second, Burst: 3}} {
		b := newBench(t, headgate.Policy{Limit: l})
		room := max(l.Burst, l.Count*(1-min(l.Burst, 1)))
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 2))
			var standing []headgate.Decision
			for range 120 {
				b.clock.Advance(time.Duration(r.Int64N(int64(l.Per)/l.Count/1000)) * time.Microsecond)
				if n := len(standing); r.IntN(3) == 0 && n > 0 {
					i := r.IntN(n)
					b.giveBack(standing[i].Receipt)
					standing = append(standing[:i:i], standing[i+1:]...)
				} else if d := b.take(fmt.Sprint(seed), 1+r.Int64N(2)); d.Verdict == headgate.Allow {
					standing = append(standing, d)
				}
			}
			for i := range standing {
				sum := int64(0)
				for _, d := range standing[i:] {
					sum += d.Receipt.Cost
					if most := room + int64(d.At.Sub(standing[i].At))*l.Count/int64(l.Per); sum > most {
						t.Fatalf("seed %d, %s: %d units stand in %v, more than %d", seed, l, sum, d.At.Sub(standing[i].At), most)
					}
				}
			}
		}
	}
}

// TestReturnedOnceByMany: a receipt that many return at once comes back once.
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

// TestStateOutlivesItsReceipts: a state that returns have emptied stays until its
// last receipt is worthless. A new one would not know of the returns in between, and
// give a receipt's units to whoever came later.
func TestStateOutlivesItsReceipts(t *testing.T) {
	b := newBench(t, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: 10 * time.Second}})
	live := newStore(t, b.addr, nil) // Its keys have no slack to hide in.
	id, err := live.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 10, Per: 10 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	first := apply(t, live, headgate.Op{Key: "k", Policy: id, Cost: 5})[0]
	apply(t, live, headgate.Op{Key: "k", Policy: id, Cost: 5})
	if err := live.Return(t.Context(), []headgate.Receipt{first.Receipt}); err != nil {
		t.Fatal(err)
	}
	apply(t, live, headgate.Op{Key: "k", Policy: id, Cost: 1})
	for _, key := range keys(t, b.client) {
		ttl, err := b.client.Do(t.Context(), b.client.B().Pttl().Key(key).Build()).AsInt64()
		if err != nil || key[len(key)-2:] == ":0" && (ttl < 9_000 || ttl > 12_000) {
			t.Errorf("%s lives for %d ms (%v), want the 10 s of both takes", key, ttl, err)
		}
	}
}

// TestLostStateTakesNoReceipts: a server that has lost a state gives nothing back to
// the one that follows it.
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

// TestReceiptsOfAnOtherLimit: a receipt from before a limit changed, there and back,
// gives nothing back: the bucket has forgotten what it stood for.
func TestReceiptsOfAnOtherLimit(t *testing.T) {
	wide := headgate.Policy{Limit: headgate.Limit{Count: 10, Per: 10 * time.Second}}
	for _, narrow := range []headgate.Limit{{Count: 1, Per: 10 * time.Second}, {Count: 10, Per: 10 * time.Second, Burst: 1}} {
		b := newBench(t, wide)
		first := b.take("k", 10)
		back := b.id
		b.id = b.prepare(headgate.Policy{Limit: narrow})
		b.take("k", 0)
		b.id = back
		b.wantRemaining("one unit was kept by "+narrow.String(), "k", 9)
		b.take("k", 9)
		b.giveBack(first.Receipt)
		if got := b.take("k", 2); got.Verdict == headgate.Allow {
			t.Errorf("%s: units that were forgotten once were returned again", narrow)
		}
	}
}

// TestClockStepTakesNoReceipts: what a step back of the clock has made a bucket
// forget is not returned on top of it.
func TestClockStepTakesNoReceipts(t *testing.T) {
	b := newBench(t, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Second}})
	first := b.take("k", 10)
	b.clock.Advance(-time.Second)
	b.wantRemaining("after the step", "k", 0)
	b.clock.Advance(500 * time.Millisecond)
	b.take("k", 5)
	b.giveBack(first.Receipt)
	b.wantRemaining("after the return", "k", 0)
}
