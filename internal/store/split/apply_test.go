package split_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/store/split"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/storetest"
)

// watched is a store in memory that counts calls and Ops, and fails on demand.
type watched struct {
	prefetch.Source

	calls, ops, grants, returns atomic.Int64
	fails                       atomic.Pointer[error]
	before                      func() // runs in each Apply, if set
}

func (w *watched) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	w.calls.Add(1)
	w.ops.Add(int64(len(ops)))
	if w.before != nil {
		w.before()
	}
	if failure := w.fails.Load(); failure != nil {
		for i := range ops {
			decisions[i] = headgate.Undecided()
		}
		return *failure
	}
	return w.Source.Apply(ctx, ops, decisions)
}

func (w *watched) Grant(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	w.grants.Add(1)
	return w.Source.Grant(ctx, ops, least, decisions)
}

func (w *watched) Return(ctx context.Context, receipts []headgate.Receipt) error {
	w.returns.Add(int64(len(receipts)))
	return w.Source.Return(ctx, receipts)
}

// pair is a split store, its two stores, and a policy in each.
type pair struct {
	*split.Store

	main, second         *watched
	perMinute, perSecond headgate.PolicyID
}

func newPair(tb testing.TB) *pair {
	tb.Helper()
	clock := storetest.NewClock()
	p := &pair{main: &watched{Source: inMemory(tb, clock.Now)}, second: &watched{Source: inMemory(tb, clock.Now)}}
	p.Store = newSplit(tb, p.main, p.second, clock.Now)
	p.perMinute, p.perSecond = p.prepare(tb, headgate.FixedWindow, time.Minute), p.prepare(tb, headgate.FixedWindow, time.Second)
	return p
}

func (p *pair) prepare(tb testing.TB, a headgate.Algorithm, per time.Duration) headgate.PolicyID {
	tb.Helper()
	policy := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 10, Per: per}}
	if a == headgate.Ban {
		policy.BanFor = time.Minute
	}
	id, err := p.Prepare(policy)
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

func (p *pair) apply(tb testing.TB, ops ...headgate.Op) []headgate.Decision {
	tb.Helper()
	decisions := make([]headgate.Decision, len(ops))
	if err := p.Apply(tb.Context(), ops, decisions); err != nil {
		tb.Fatal(err)
	}
	return decisions
}

// left gives the remaining units of key k under both policies.
func (p *pair) left(tb testing.TB) [2]int64 {
	tb.Helper()
	ds := p.apply(tb, headgate.Op{Key: "k", Policy: p.perMinute, Kind: headgate.Peek},
		headgate.Op{Key: "k", Policy: p.perSecond, Kind: headgate.Peek, Group: 1, Window: 1})
	return [2]int64{ds[0].Remaining, ds[1].Remaining}
}

// group is a group of cost n with a limit in each store.
func (p *pair) group(n int64) []headgate.Op {
	return []headgate.Op{
		{Key: "k", Policy: p.perMinute, Cost: n}, {Key: "k", Policy: p.perSecond, Cost: n, Window: 1},
	}
}

// TestWhere: a limit of a second counts in its store, and all others in the main store, also bans of
// a second, and periods close to a second.
func TestWhere(t *testing.T) {
	for _, c := range []struct {
		algorithm headgate.Algorithm
		per       time.Duration
		second    bool
	}{
		{headgate.FixedWindow, time.Second, true},
		{headgate.TokenBucket, time.Second, true},
		{headgate.SlidingLog, time.Second, true},
		{headgate.LeakyBucket, time.Second, true},
		{headgate.Ban, time.Second, false},
		{headgate.FixedWindow, time.Minute, false},
		{headgate.FixedWindow, 2 * time.Second, false},
		{headgate.FixedWindow, 999 * time.Millisecond, false},
	} {
		p := newPair(t)
		p.apply(t, headgate.Op{Key: "k", Policy: p.prepare(t, c.algorithm, c.per), Cost: 1})
		if main, second := p.main.calls.Load(), p.second.calls.Load(); main+second != 1 || second == 1 != c.second {
			t.Errorf("%s of %s: %d calls of the main store and %d of the other", c.algorithm, c.per, main, second)
		}
	}
}

// TestBothAtOnce: each of the two calls of a request returns only after the other has begun.
func TestBothAtOnce(t *testing.T) {
	p := newPair(t)
	mainBegan, secondBegan := make(chan struct{}), make(chan struct{})
	p.main.before = func() { close(mainBegan); <-secondBegan }
	p.second.before = func() { close(secondBegan); <-mainBegan }
	for _, d := range p.apply(t, p.group(1)...) {
		if d.Verdict != headgate.Allow || d.Remaining != 9 {
			t.Errorf("got %+v", d)
		}
	}
}

// TestOneCall: many groups make one call of each store.
func TestOneCall(t *testing.T) {
	p := newPair(t)
	var ops []headgate.Op
	for i := range 10 {
		for _, op := range p.group(1) {
			op.Group = uint8(i)
			ops = append(ops, op)
		}
	}
	for i, d := range p.apply(t, ops...) {
		if want := int64(9 - i/2); d.Verdict != headgate.Allow || d.Remaining != want {
			t.Errorf("op %d: %v, %d remain, want %d", i, d.Verdict, d.Remaining, want)
		}
	}
	if main, second := p.main.calls.Load(), p.second.calls.Load(); main != 1 || second != 1 {
		t.Errorf("%d calls of the main store and %d of the other, want one of each", main, second)
	}
}

// TestRefusedInOne: a refusal in one store leaves no unit taken in the other, in both orders.
func TestRefusedInOne(t *testing.T) {
	p := newPair(t)
	p.apply(t, p.group(4)...)
	p.apply(t, headgate.Op{Key: "k", Policy: p.perSecond, Cost: 6, Window: 1})
	ds := p.apply(t, p.group(2)...)
	if ds[0].Verdict != headgate.Allow || !ds[0].Receipt.Empty() || ds[0].Remaining != 6 || ds[1].Verdict != headgate.Deny {
		t.Errorf("got %+v", ds)
	}
	if left := p.left(t); left != [2]int64{6, 0} {
		t.Errorf("%v remain, want 6 and 0", left)
	}
}

// TestReceipts: a request gives its units back to both stores, once.
func TestReceipts(t *testing.T) {
	p := newPair(t)
	ds := p.apply(t, p.group(3)...)
	for range 2 {
		if err := p.Return(t.Context(), []headgate.Receipt{ds[0].Receipt, ds[1].Receipt}); err != nil {
			t.Fatal(err)
		}
		if left := p.left(t); left != [2]int64{10, 10} {
			t.Errorf("%v remain, want 10 and 10", left)
		}
	}
}

// TestOneFails: if one store fails, no decision passes, and the other store gets its units back.
func TestOneFails(t *testing.T) {
	broken := errors.New("the connection broke")
	for name, failure := range map[string]error{"fails": broken, "is unreachable": headgate.ErrUnavailable} {
		for _, which := range []string{"main", "per second"} {
			p := newPair(t)
			failing, other := p.main, p.second
			if which != "main" {
				failing, other = other, failing
			}
			failing.fails.Store(&failure)
			decisions := make([]headgate.Decision, 2)
			err := p.Apply(t.Context(), p.group(3), decisions)
			if err == nil || errors.Is(err, headgate.ErrUnavailable) || !errors.Is(failure, headgate.ErrUnavailable) && !errors.Is(err, broken) {
				t.Errorf("%s %s: error %v", which, name, err)
			}
			for _, d := range decisions {
				if d != headgate.Undecided() {
					t.Errorf("%s %s: got %+v", which, name, d)
				}
			}
			if other.returns.Load() != 1 {
				t.Errorf("%s %s: the other store got %d receipts back, want 1", which, name, other.returns.Load())
			}
			failing.fails.Store(nil)
			if left := p.left(t); left != [2]int64{10, 10} {
				t.Errorf("%s %s: %v remain, want 10 and 10", which, name, left)
			}
		}
	}
}

// TestAloneFails: a request with limits in one store does not depend on the other store. Its error is
// that of the store.
func TestAloneFails(t *testing.T) {
	p := newPair(t)
	failure := headgate.ErrUnavailable
	p.second.fails.Store(&failure)
	p.apply(t, headgate.Op{Key: "k", Policy: p.perMinute, Cost: 1})
	err := p.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: p.perSecond, Cost: 1}}, make([]headgate.Decision, 1))
	if !errors.Is(err, headgate.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
}

// TestFaultyOps: an Op that cannot be decided takes nothing in either store.
func TestFaultyOps(t *testing.T) {
	p := newPair(t)
	for _, bad := range []headgate.Op{
		{Key: "k", Policy: 9999, Cost: 1},
		{Key: "k", Policy: p.perSecond, Cost: -1},
		{Key: "k", Policy: p.perSecond, Cost: 1, Kind: headgate.Book},
		{Key: "k", Policy: p.perSecond, Cost: 1, Kind: headgate.Refund},
		{Key: "k", Policy: p.perSecond, Cost: 1, Kind: headgate.TakeIfAll},
	} {
		ops := append(p.group(1), bad)
		if err := p.Apply(t.Context(), ops, make([]headgate.Decision, len(ops))); err == nil {
			t.Errorf("%+v gives no error", bad)
		}
	}
	if main, second := p.main.calls.Load(), p.second.calls.Load(); main+second != 0 {
		t.Errorf("%d calls of the main store and %d of the other, want none", main, second)
	}
}

// TestGrant: a grant in one store is that store's own. A group in both takes the most that passes both.
func TestGrant(t *testing.T) {
	p := newPair(t)
	p.apply(t, headgate.Op{Key: "k", Policy: p.perSecond, Cost: 4, Window: 1})
	decisions := make([]headgate.Decision, 2)
	if err := p.Grant(t.Context(), p.group(10)[:1], []int64{1}, decisions); err != nil || p.main.grants.Load() != 1 {
		t.Fatalf("%v, %d grants, want 1", err, p.main.grants.Load())
	}
	if decisions[0].Receipt.Cost != 10 || p.Return(t.Context(), []headgate.Receipt{decisions[0].Receipt}) != nil {
		t.Errorf("got %+v, want a grant of 10", decisions[0])
	}
	if err := p.Grant(t.Context(), p.group(10), []int64{1, 1}, decisions); err != nil {
		t.Fatal(err)
	}
	if decisions[0].Receipt.Cost != 6 || decisions[1].Receipt.Cost != 6 || p.left(t) != [2]int64{4, 0} {
		t.Errorf("got %+v, and %v remain, want a grant of 6 of both", decisions, p.left(t))
	}
}

// TestAllocations: one Op, and Ops in both stores, allocate nothing here.
func TestAllocations(t *testing.T) {
	if race.On {
		return // With the race detector, pools drop values.
	}
	p := newPair(t)
	ops := p.group(0)
	ops[1].Group = 1
	decisions := make([]headgate.Decision, 2)
	for name, n := range map[string]int{"one store": 1, "both stores": 2} {
		got := testing.AllocsPerRun(500, func() {
			if err := p.Apply(t.Context(), ops[:n], decisions); err != nil {
				t.Fatal(err)
			}
		})
		if got > 0 {
			t.Errorf("%s: %v allocations, want none", name, got)
		}
	}
}
