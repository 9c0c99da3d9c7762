package script_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/storetest"
)

// bench is a store with its own clock, server and limit.
type bench struct {
	t      *testing.T
	client rueidis.Client
	clock  *storetest.Clock
	store  *store
	id     headgate.PolicyID
}

func newBench(t *testing.T, p headgate.Policy) *bench {
	t.Helper()
	b := &bench{t: t, client: newClient(t, testserver.Start(t).Addr), clock: storetest.NewClock()}
	b.store = newStore(t, b.client, 4, b.clock.Now)
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

func (b *bench) forget(key string) {
	b.t.Helper()
	if err := b.store.Forget(b.t.Context(), []headgate.Op{{Key: key}}); err != nil {
		b.t.Fatal(err)
	}
}

// returnable gives a policy of each algorithm that has receipts.
func returnable(count int64, per time.Duration) []headgate.Policy {
	var all []headgate.Policy
	for _, a := range headgate.Algorithms() {
		p := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: count, Per: per}}
		if a == headgate.SlidingWindow {
			p.SubWindows = 4
		}
		all = append(all, p)
	}
	return all
}

// TestReturnedTokensAreBounded: after any sequence of Takes and Returns, the units that were not
// returned stay within burst + rate x time in every interval.
func TestReturnedTokensAreBounded(t *testing.T) {
	for _, l := range []headgate.Limit{{Count: 10, Per: time.Second}, {Count: 7, Per: time.Second, Burst: 3}} {
		b := newBench(t, headgate.Policy{Limit: l})
		room := max(l.Burst, l.Count*(1-min(l.Burst, 1)))
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 2))
			var unreturned []headgate.Decision
			for range 120 {
				b.clock.Advance(time.Duration(r.Int64N(int64(l.Per)/l.Count/1000)) * time.Microsecond)
				if n := len(unreturned); r.IntN(3) == 0 && n > 0 {
					i := r.IntN(n)
					b.giveBack(unreturned[i].Receipt)
					unreturned = append(unreturned[:i:i], unreturned[i+1:]...)
				} else if d := b.take(fmt.Sprint(seed), 1+r.Int64N(2)); d.Verdict == headgate.Allow {
					unreturned = append(unreturned, d)
				}
			}
			for i := range unreturned {
				sum := int64(0)
				for _, d := range unreturned[i:] {
					sum += d.Receipt.Cost
					if most := room + int64(d.At.Sub(unreturned[i].At))*l.Count/int64(l.Per); sum > most {
						t.Fatalf("seed %d, %s: %d unreturned units within %v, want at most %d", seed, l, sum, d.At.Sub(unreturned[i].At), most)
					}
				}
			}
		}
	}
}

// TestReturnedOnceByMany: many callers return one receipt at the same time, and its units are
// returned once.
func TestReturnedOnceByMany(t *testing.T) {
	for _, p := range returnable(100, time.Hour) {
		b := newBench(t, p)
		b.take("k", 80)
		last := b.take("k", 10)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 5 {
					if err := b.store.Return(t.Context(), []headgate.Receipt{last.Receipt, last.Receipt}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		b.wantRemaining(p.Algorithm.String(), "k", 20)
	}
}

// TestVoidReceipts: a receipt of a lost state returns nothing to a later state. The state is lost by a
// Forget or an eviction.
func TestVoidReceipts(t *testing.T) {
	for _, p := range returnable(10, 10*time.Second) {
		for what, lose := range map[string]func(b *bench){
			"after Forget": func(b *bench) { b.forget("k") },
			"after two Forgets": func(b *bench) {
				b.forget("k")
				b.take("k", 3)
				b.forget("k")
			},
			"after an eviction": func(b *bench) {
				flush(t, b.client)
				b.clock.Advance(time.Microsecond)
			},
		} {
			b := newBench(t, p)
			first := b.take("k", 10)
			lose(b)
			b.wantRemaining(p.Algorithm.String()+" "+what, "k", 10)
			b.take("k", 10)
			b.giveBack(first.Receipt)
			b.wantRemaining(p.Algorithm.String()+" "+what+" and the return of an old receipt", "k", 0)
		}
	}
}

// TestReceiptsOfAnOtherLimit: another policy took units in between. An earlier receipt returns
// nothing, because the rate at which its units have refilled is unknown.
func TestReceiptsOfAnOtherLimit(t *testing.T) {
	slow := headgate.Policy{Limit: headgate.Limit{Count: 10, Per: 10 * time.Second}}
	b := newBench(t, slow)
	first := b.take("k", 10)
	slowID := b.id
	b.id = b.prepare(headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: 10 * time.Second, Burst: 20}})
	b.take("k", 1)
	b.clock.Advance(100 * time.Millisecond)
	b.id = slowID
	b.wantRemaining("after ten units have refilled at the other rate", "k", 9)
	b.take("k", 9)
	b.giveBack(first.Receipt)
	if got := b.take("k", 2); got.Verdict == headgate.Allow {
		t.Error("a receipt returned units that had already refilled")
	}
}

// TestClockStepTakesNoReceipts: after a step back of the clock, a bucket drops units. A receipt
// does not return these units again.
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

// TestEveryKeyExpires: by the server's own clock, every write has a time to live that fits its
// counts. A single unit does not keep its state for the whole period.
func TestEveryKeyExpires(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	live := newStore(t, client, 1, nil) // Without a test clock, the slack of keys is one second.
	for i, p := range append(returnable(10, 10*time.Second),
		headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 10, Per: 4 * time.Second}, BanFor: 6 * time.Second}) {
		id, err := live.Prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		flush(t, client)
		op := headgate.Op{Key: fmt.Sprint(i), Policy: id, Cost: 5}
		d := apply(t, live, op)[0]
		if p.Algorithm == headgate.Ban {
			op.Cost = 6
			apply(t, live, op)
		}
		if err := live.Return(t.Context(), []headgate.Receipt{d.Receipt}); err != nil {
			t.Fatal(err)
		}
		least, most := d.ResetAfter.Milliseconds(), d.ResetAfter.Milliseconds()+2300
		if p.Algorithm == headgate.Ban {
			least, most = 9500, 11_500
		}
		for _, key := range keys(t, client) {
			ttl, err := client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64()
			if err != nil || ttl < least-500 || ttl > most {
				t.Errorf("%s: key %s has a time to live of %d ms (error %v), want %d to %d", p.Algorithm, key, ttl, err, least, most)
			}
		}
	}
}

// TestStateOutlivesItsReceipts: a state that returns have emptied stays until its last receipt
// is invalid. A new state would not know the earlier returns, and would give the units of a
// receipt to later requests.
func TestStateOutlivesItsReceipts(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	live := newStore(t, client, 0, nil)
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
	for _, key := range keys(t, client) {
		ttl, err := client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64()
		if err != nil || !strings.Contains(key, ":r") && (ttl < 9_000 || ttl > 12_500) {
			t.Errorf("key %s has a time to live of %d ms (error %v), want the 10 s of both takes", key, ttl, err)
		}
	}
}

// TestForgottenByAnother: a Forget by one process takes effect for all processes. The remaining keys
// on the server expire.
func TestForgottenByAnother(t *testing.T) {
	for _, p := range returnable(400, time.Minute) {
		b := newBench(t, p)
		other := newStore(t, b.client, 4, nil)
		version := p
		version.Limit.Count++
		if _, err := other.Prepare(version); err != nil {
			t.Fatal(err)
		}
		for range 300 { // A log of this length has a list.
			b.clock.Advance(time.Microsecond)
			b.take("k", 1)
		}
		if err := other.Forget(t.Context(), []headgate.Op{{Key: "k"}, {Key: "never seen"}}); err != nil {
			t.Fatal(err)
		}
		b.wantRemaining(p.Algorithm.String()+" after Forget", "k", 400)
		for _, key := range keys(t, b.client) {
			ttl, err := b.client.Do(t.Context(), b.client.B().Pttl().Key(key).Build()).AsInt64()
			if err != nil || ttl <= 0 || strings.HasSuffix(key, ":l") {
				t.Errorf("%s: key %s has a time to live of %d ms (error %v), want it to expire", p.Algorithm, key, ttl, err)
			}
		}
	}
}

// TestLostList: the list of a log was evicted. The log counts its remaining entries and starts a
// new list. If the state was evicted, the old list is not used.
func TestLostList(t *testing.T) {
	b := newBench(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1000, Per: time.Minute}})
	lose := func(suffix string) {
		t.Helper()
		for _, key := range keys(t, b.client) {
			if strings.HasSuffix(key, suffix) {
				if err := b.client.Do(t.Context(), b.client.B().Del().Key(key).Build()).Error(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	fill := func(n int) {
		t.Helper()
		for range n {
			b.clock.Advance(time.Millisecond)
			b.take("k", 1)
		}
	}
	fill(600)
	lose(":l")
	b.clock.Advance(time.Minute - 100*time.Millisecond) // The oldest entries leave the window.
	if d := b.take("k", 1); d.Remaining < 1000-200 || d.Remaining > 1000-2 {
		t.Errorf("without its list: %d units remaining, want 800 to 998", d.Remaining)
	}
	fill(600)
	left := b.take("k", 1).Remaining
	lose(":0gzq0ao")
	b.wantRemaining("without its state", "k", 1000)
	fill(900)
	b.wantRemaining("with an old list", "k", 100)
	b.clock.Advance(time.Minute)
	b.wantRemaining("a window later", "k", 1000)
	if left > 400 {
		t.Errorf("%d units remaining after 600 takes, want at most 400", left)
	}
}

// TestReturnsWithoutAList: the list of a log is evicted, and all of its receipts are returned.
// The entries in the state are removed. The evicted entries expire with the state.
func TestReturnsWithoutAList(t *testing.T) {
	b := newBench(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1000, Per: time.Minute}})
	var receipts []headgate.Receipt
	for range 500 {
		b.clock.Advance(time.Millisecond)
		receipts = append(receipts, b.take("k", 1).Receipt)
	}
	for _, key := range keys(t, b.client) {
		if strings.HasSuffix(key, ":l") {
			if err := b.client.Do(t.Context(), b.client.B().Del().Key(key).Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.giveBack(receipts...)
	if left := b.take("k", 1).Remaining; left != 999 {
		t.Errorf("%d units remaining, want 999", left)
	}
	b.clock.Advance(time.Minute)
	b.wantRemaining("a window later", "k", 1000)
}

// TestFullServerCountsNothing: a server without free memory refuses a whole batch, with one group or
// many groups. No state changes.
func TestFullServerCountsNothing(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	clock := storetest.NewClock()
	s := newStore(t, client, 1, clock.Now)
	var ops []headgate.Op
	for i, p := range returnable(300, time.Hour) {
		id, err := s.Prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		for group := range 3 {
			ops = append(ops, headgate.Op{Key: fmt.Sprint(group, i), Policy: id, Window: uint8(i), Cost: 1, Group: uint8(i % 2)})
		}
	}
	maxmemory := func(value string) {
		t.Helper()
		if err := client.Do(t.Context(), client.B().ConfigSet().ParameterValue().ParameterValue("maxmemory", value).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	for range 290 { // A log of this length has a list.
		clock.Advance(time.Microsecond)
		apply(t, s, ops...)
		if len(keys(t, client)) == 0 {
			t.Fatal("the server has no keys, want the states of the counted units")
		}
	}
	before := dump(t, client)
	maxmemory("1")
	for n := range ops {
		err := s.Apply(t.Context(), ops[n:], make([]headgate.Decision, len(ops)))
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Fatalf("Apply on a full server: got error %v, want OOM", err)
		}
	}
	maxmemory("0")
	if dump(t, client) != before {
		t.Error("the full server has changed a state")
	}
	for i, d := range apply(t, s, ops...) {
		if d.Verdict == headgate.Deny {
			t.Errorf("Op %d after the server has memory again: got %+v, want Allow", i, d)
		}
	}
}
