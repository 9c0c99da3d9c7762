package memcached_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// twins are this store and a store in memory, with the same calls.
type twins struct {
	t     *testing.T
	r     *rand.Rand
	clock *storetest.Clock
	// stores has the store in memory and two stores on Memcached, which stand for two processes and
	// take turns.
	memory *memory.Store
	shared [2]*memcached.Store
	ids    [3][]headgate.PolicyID
	taken  [][2]headgate.Receipt
	from   []int
}

// TestAsMemory runs Takes, bookings, Refunds, Returns and Forgets, of one key or several, on one server
// or two. The decisions are those of the store in memory, with times rounded up to the next
// microsecond.
func TestAsMemory(t *testing.T) {
	servers := []string{testserver.Start(t).Addr, testserver.Start(t).Addr}
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for _, addr := range servers {
				flush(t, addr)
			}
			tw := newTwins(t, seed, servers)
			for step := range 250 {
				tw.step(step)
			}
		})
	}
}

func late(got, want time.Duration) bool { return got < want || got-want >= time.Microsecond }

func newTwins(t *testing.T, seed uint64, servers []string) *twins {
	t.Helper()
	tw := &twins{t: t, r: rand.New(rand.NewPCG(seed, 11)), clock: storetest.NewClock()}
	var err error
	if tw.memory, err = memory.New(memory.Config{MaxMemory: 8 << 20, Clock: tw.clock.Now}); err != nil {
		t.Fatal(err)
	}
	for i := range tw.shared {
		tw.shared[i] = newStore(t, memcached.Config{Servers: servers, Clock: tw.clock.Now})
	}
	for _, p := range mixedPolicies() {
		tw.ids[0] = append(tw.ids[0], prepare(t, tw.memory, p))
		for i := range tw.shared {
			tw.ids[1+i] = append(tw.ids[1+i], prepare(t, tw.shared[i], p))
		}
	}
	return tw
}

// mixedPolicies gives a policy for each window of a key.
func mixedPolicies() []headgate.Policy {
	l := headgate.Limit{Count: 5, Per: time.Second}
	return []headgate.Policy{
		{Limit: headgate.Limit{Count: 7, Per: time.Second, Burst: 6}, MaxWait: 500 * time.Millisecond},
		{Algorithm: headgate.LeakyBucket, Limit: l, MaxWait: time.Second},
		{Algorithm: headgate.FixedWindow, Limit: l},
		{Algorithm: headgate.SlidingWindow, Limit: l, SubWindows: 4},
		{Algorithm: headgate.FixedWindow, Limit: l, CountRejected: true},
		{Algorithm: headgate.FixedWindow, Limit: l, CountRejected: true, CountAll: true},
		{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 20, Per: time.Second}, BanFor: time.Second},
	}
}

// ops makes a group of one to three keys, each with some of its windows.
func (tw *twins) ops(which int, r *rand.Rand) []headgate.Op {
	var ops []headgate.Op
	cost, mode := r.Int64N(7), []headgate.OpKind{headgate.Take, headgate.TakeNow, headgate.TakeIfAll, headgate.Peek}[r.IntN(10)/3]
	for key := range 1 + r.IntN(3) {
		for w, id := range tw.ids[which] {
			if r.IntN(3) > 0 {
				continue
			}
			op := headgate.Op{Key: fmt.Sprint("k", key), Policy: id, Window: uint8(w), Cost: cost, Kind: mode}
			if w < 2 && mode == headgate.Take && r.IntN(2) == 0 {
				op.Kind = headgate.Book
			}
			ops = append(ops, op)
		}
	}
	return ops
}

func (tw *twins) step(step int) {
	tw.clock.Advance(time.Duration(tw.r.IntN(400_000)) * time.Microsecond)
	which, seed := tw.r.IntN(2), tw.r.Uint64()
	switch n := len(tw.taken); {
	case tw.r.IntN(12) == 0:
		op := headgate.Op{Key: fmt.Sprint("k", tw.r.IntN(3)), Window: uint8(tw.r.IntN(len(tw.ids[0])))}
		for _, s := range []headgate.Store{tw.memory, tw.shared[which]} {
			if err := s.Forget(tw.t.Context(), []headgate.Op{op}); err != nil {
				tw.t.Fatal(err)
			}
		}
	case tw.r.IntN(8) == 0:
		w := tw.r.IntN(len(tw.ids[0]))
		if !limit.Accepts(mixedPolicies()[w].Algorithm, headgate.Refund) {
			return
		}
		op := headgate.Op{Key: fmt.Sprint("k", tw.r.IntN(3)), Window: uint8(w), Policy: tw.ids[0][w], Cost: tw.r.Int64N(4), Kind: headgate.Refund}
		want := apply(tw.t, tw.memory, op)[0]
		op.Policy = tw.ids[1+which][w]
		tw.compare(step, op, apply(tw.t, tw.shared[which], op)[0], want)
	case tw.r.IntN(3) == 0 && n > 0:
		// Only the store that issued a receipt can read it.
		i := n - 1 - tw.r.IntN(min(n, 8))
		giveBack(tw.t, tw.memory, tw.taken[i][0])
		giveBack(tw.t, tw.shared[tw.from[i]], tw.taken[i][1])
	default:
		want := apply(tw.t, tw.memory, tw.ops(0, rand.New(rand.NewPCG(seed, 1)))...)
		ops := tw.ops(1+which, rand.New(rand.NewPCG(seed, 1)))
		for i, got := range apply(tw.t, tw.shared[which], ops...) {
			tw.compare(step, ops[i], got, want[i])
			if !got.Receipt.Empty() {
				tw.taken = append(tw.taken, [2]headgate.Receipt{want[i].Receipt, got.Receipt})
				tw.from = append(tw.from, which)
			}
		}
	}
}

func (tw *twins) compare(step int, op headgate.Op, got, want headgate.Decision) {
	tw.t.Helper()
	if got.Receipt.Empty() != want.Receipt.Empty() || got.Receipt.Cost != want.Receipt.Cost {
		tw.t.Fatalf("step %d, %+v: receipt %+v, want %+v", step, op, got.Receipt, want.Receipt)
	}
	if late(got.RetryAfter, want.RetryAfter) || late(got.ResetAfter, want.ResetAfter) {
		tw.t.Fatalf("step %d, %+v:\n got %+v\nwant %+v", step, op, got, want)
	}
	for _, d := range []*headgate.Decision{&got, &want} {
		d.Receipt, d.RetryAfter, d.ResetAfter = headgate.Receipt{}, 0, 0
	}
	if got != want {
		tw.t.Fatalf("step %d, %+v:\n got %+v\nwant %+v", step, op, got, want)
	}
}
