package redis_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit/twin"
	"github.com/headgate/headgate/store/storetest"
)

// TestChangedLimitKeepsUse compares what a bucket owes after a change with the exact
// fraction: never less, and not two microseconds more. Whole units, which divide
// badly in floating point, are to the unit.
func TestChangedLimitKeepsUse(t *testing.T) {
	b := newBench(t, headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second}})
	r := rand.New(rand.NewPCG(3, 3))
	for range 1500 {
		from, to := randomBucket(r), randomBucket(r)
		exact, key := twin.New(from), string(rune('a'+r.IntN(26)))+time.Duration(r.Int64()).String()
		b.id = b.prepare(from)
		cost := 1 + r.Int64N(from.Limit.Count)
		b.take(key, cost)
		exact.Do(b.clock.Now(), cost, headgate.Take)
		if r.IntN(2) == 0 {
			b.clock.Advance(time.Duration(r.Int64N(int64(from.Limit.Per)/1000)) * time.Microsecond)
		}
		id := b.prepare(to)
		exact.Change(to, b.clock.Now())
		got := apply(t, b.store, headgate.Op{Key: key, Policy: id})[0]
		want := exact.Do(b.clock.Now(), 0, headgate.Take)
		if got.ResetAfter < want.Reset || got.ResetAfter-want.Reset >= 2*time.Microsecond {
			t.Fatalf("%d of %s under %s: owes %v, want %v", cost, from.Limit, to.Limit, got.ResetAfter, want.Reset)
		}
		if b.clock.Now() == storetest.Start && got.Remaining != want.Remaining {
			t.Fatalf("%d of %s under %s: %d remain, want %d", cost, from.Limit, to.Limit, got.Remaining, want.Remaining)
		}
		b.clock.Advance(storetest.Start.Sub(b.clock.Now()))
	}
}

func randomBucket(r *rand.Rand) headgate.Policy {
	return headgate.Policy{Limit: headgate.Limit{
		Count: 1 + r.Int64N(1<<(1+r.IntN(20))), Per: time.Duration(1+r.Int64N(1<<(1+r.IntN(22)))) * time.Millisecond,
	}}
}

// TestLogHoldsItsTime: after a small step back of the clock a log decides at its
// newest entry, so that its entries stay in order.
func TestLogHoldsItsTime(t *testing.T) {
	b := newBench(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 5, Per: time.Second}})
	first := b.take("k", 1)
	b.clock.Advance(-time.Millisecond)
	second := b.take("k", 2)
	if second.At != first.At || second.ResetAfter != time.Second+time.Millisecond {
		t.Errorf("decided at %v, %v ahead of the reset; want at %v, 1.001s ahead", second.At, second.ResetAfter, first.At)
	}
	b.giveBack(first.Receipt)
	b.wantRemaining("after a return", "k", 3)
}

// TestBookToTheEdge: the last departure that MaxWait allows is booked.
func TestBookToTheEdge(t *testing.T) {
	b := newBench(t, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Second}, MaxWait: 300 * time.Millisecond})
	b.take("k", 10)
	book := headgate.Op{Key: "k", Policy: b.id, Cost: 3, Mode: headgate.Book}
	if d := apply(t, b.store, book)[0]; d.Verdict != headgate.Wait || d.RetryAfter != 300*time.Millisecond {
		t.Errorf("three ahead: %v in %v, want to wait for 300ms", d.Verdict, d.RetryAfter)
	}
	book.Cost = 1
	if d := apply(t, b.store, book)[0]; d.Reason != headgate.WaitTooLong || d.RetryAfter != 100*time.Millisecond {
		t.Errorf("a fourth: %v in %v, want wait_too_long, and 100ms", d.Reason, d.RetryAfter)
	}
}
