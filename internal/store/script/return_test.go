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

// bench is a store with a clock on a server of its own, and one limit.
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
		b.t.Errorf("%s: %d remain, want %d", what, got, want)
	}
}

func (b *bench) forget(key string) {
	b.t.Helper()
	if err := b.store.Forget(b.t.Context(), []headgate.Op{{Key: key}}); err != nil {
		b.t.Fatal(err)
	}
}

// returnable gives a limit of each algorithm that has receipts.
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

// TestVoidReceipts: a receipt of what a key has lost gives nothing to whoever came
// later: after a Forget, and after a state that was evicted, all at one moment of the
// clock or soon after.
func TestVoidReceipts(t *testing.T) {
	for _, p := range returnable(10, 10*time.Second) {
		for what, lose := range map[string]func(b *bench){
			"forgotten": func(b *bench) { b.forget("k") },
			"forgotten twice": func(b *bench) {
				b.forget("k")
				b.take("k", 3)
				b.forget("k")
			},
			"evicted": func(b *bench) {
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
			b.wantRemaining(p.Algorithm.String()+" "+what+", and an old receipt returned", "k", 0)
		}
	}
}

// TestReceiptsOfAnOtherLimit: a receipt from before another policy took, there and back,
// gives nothing back: at which rate its units have leaked is not known.
func TestReceiptsOfAnOtherLimit(t *testing.T) {
	slow := headgate.Policy{Limit: headgate.Limit{Count: 10, Per: 10 * time.Second}}
	b := newBench(t, slow)
	first := b.take("k", 10)
	back := b.id
	b.id = b.prepare(headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: 10 * time.Second, Burst: 20}})
	b.take("k", 1)
	b.clock.Advance(100 * time.Millisecond)
	b.id = back
	b.wantRemaining("ten units have leaked at the other rate", "k", 9)
	b.take("k", 9)
	b.giveBack(first.Receipt)
	if got := b.take("k", 2); got.Verdict == headgate.Allow {
		t.Error("units that have leaked were returned")
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

// TestEveryKeyExpires: on the server's own clock, every write has a time to live, which
// is as long as what it counts, and not the whole period for a single unit.
func TestEveryKeyExpires(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	live := newStore(t, client, 1, nil) // Its keys have a second of slack.
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
				t.Errorf("%s: %s lives for %d ms (%v), want %d to %d", p.Algorithm, key, ttl, err, least, most)
			}
		}
	}
}

// TestStateOutlivesItsReceipts: a state that returns have emptied stays until its
// last receipt is worthless. A new one would not know of the returns in between, and
// give a receipt's units to whoever came later.
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
			t.Errorf("%s lives for %d ms (%v), want the 10 s of both takes", key, ttl, err)
		}
	}
}

// TestForgottenByAnother: what one process forgets is forgotten for all, and what
// stays of it expires.
func TestForgottenByAnother(t *testing.T) {
	for _, p := range returnable(400, time.Minute) {
		b := newBench(t, p)
		other := newStore(t, b.client, 4, nil)
		version := p
		version.Limit.Count++
		if _, err := other.Prepare(version); err != nil {
			t.Fatal(err)
		}
		for range 300 { // A log of so many has a list.
			b.clock.Advance(time.Microsecond)
			b.take("k", 1)
		}
		if err := other.Forget(t.Context(), []headgate.Op{{Key: "k"}, {Key: "never seen"}}); err != nil {
			t.Fatal(err)
		}
		b.wantRemaining(p.Algorithm.String()+" forgotten", "k", 400)
		for _, key := range keys(t, b.client) {
			ttl, err := b.client.Do(t.Context(), b.client.B().Pttl().Key(key).Build()).AsInt64()
			if err != nil || ttl <= 0 || strings.HasSuffix(key, ":l") {
				t.Errorf("%s: %s stays for %d ms (%v)", p.Algorithm, key, ttl, err)
			}
		}
	}
}

// TestLostList: a log whose list was evicted counts what is left, and starts its list
// anew; a state that was evicted finds no list from before.
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
	b.clock.Advance(time.Minute - 100*time.Millisecond) // The front leaves the window.
	if d := b.take("k", 1); d.Remaining < 1000-200 || d.Remaining > 1000-2 {
		t.Errorf("without its list: %d remain", d.Remaining)
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
		t.Errorf("%d remain after 600", left)
	}
}

// TestReturnsWithoutAList: the list of a log is evicted, and all of its receipts come
// back: what is found is returned, and what was lost is gone with the last of it.
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
		t.Errorf("%d remain, want 999", left)
	}
	b.clock.Advance(time.Minute)
	b.wantRemaining("a window later", "k", 1000)
}

// TestFullServerCountsNothing: a server without memory decides nothing of a batch, be
// it one group or many: what had room before has it afterwards.
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
	for range 290 { // Some more, and the log writes its list.
		clock.Advance(time.Microsecond)
		apply(t, s, ops...)
		if len(keys(t, client)) == 0 {
			t.Fatal("nothing is counted")
		}
	}
	before := dump(t, client)
	maxmemory("1")
	for n := range ops {
		err := s.Apply(t.Context(), ops[n:], make([]headgate.Decision, len(ops)))
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Fatalf("a full server: %v", err)
		}
	}
	maxmemory("0")
	if dump(t, client) != before {
		t.Error("a full server has counted something")
	}
	for i, d := range apply(t, s, ops...) {
		if d.Verdict == headgate.Deny {
			t.Errorf("op %d: %+v", i, d)
		}
	}
}
