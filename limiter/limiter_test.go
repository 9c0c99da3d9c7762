package limiter_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit/twin"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/store/storetest"
)

// configs returns one limiter for each kind of state: a bucket with a whole interval, a
// bucket with a fractional interval, a queue, and the windows.
func configs(clock *storetest.Clock) map[string]struct {
	limit  headgate.Limit
	config limiter.Config
} {
	type c = struct {
		limit  headgate.Limit
		config limiter.Config
	}
	five := headgate.Limit{Count: 5, Per: time.Second}
	return map[string]c{
		"token_bucket, whole interval":      {five, limiter.Config{Clock: clock.Now}},
		"token_bucket, fractional interval": {headgate.Limit{Count: 7, Per: time.Second, Burst: 3}, limiter.Config{Clock: clock.Now}},
		"leaky_bucket":                      {five, limiter.Config{Clock: clock.Now, Algorithm: headgate.LeakyBucket}},
		"fixed_window":                      {five, limiter.Config{Clock: clock.Now, Algorithm: headgate.FixedWindow}},
		"sliding_log":                       {five, limiter.Config{Clock: clock.Now, Algorithm: headgate.SlidingLog}},
		"sliding_window":                    {five, limiter.Config{Clock: clock.Now, Algorithm: headgate.SlidingWindow, SubWindows: 3}},
	}
}

// used is a Decision with values in all fields, to show that a decision overwrites them.
var used = headgate.Decision{
	Verdict: headgate.Wait, Reason: headgate.Banned, Limit: -1, Remaining: -2, RetryAfter: -3, ResetAfter: -4, At: -5,
	Receipt: headgate.Receipt{Nonce: 1, Place: [2]uint64{2, 3}, Cost: 4, From: 5, FromPart: 6, Policy: 7, Returned: 8},
}

// TestTwins compares Single, one key of Keyed, and the twin under random traffic. Old
// values of the Decision must not remain.
func TestTwins(t *testing.T) {
	clock := storetest.NewClock()
	for name, c := range configs(clock) {
		t.Run(name, func(t *testing.T) {
			single, err := limiter.NewSingle(c.limit, c.config)
			if err != nil {
				t.Fatal(err)
			}
			keyed, err := limiter.New(c.limit, c.config)
			if err != nil {
				t.Fatal(err)
			}
			w := twin.New(headgate.Policy{Algorithm: c.config.Algorithm, Limit: c.limit, SubWindows: c.config.SubWindows})
			r := rand.New(rand.NewPCG(1, 1))
			for step := range 2000 {
				clock.Advance(time.Duration(r.IntN(400)) * time.Millisecond * time.Duration(r.IntN(2)))
				cost := int64(r.IntN(4))
				a, b := used, used
				mode := headgate.Take
				if r.IntN(4) == 0 {
					mode = headgate.Peek
					_ = single.Peek(cost, &a)
					_ = keyed.Peek(t.Context(), "k", cost, &b)
				} else {
					_ = single.Take(cost, &a)
					_ = keyed.Take(t.Context(), "k", cost, &b)
				}
				want := w.Do(clock.Now(), cost, mode)
				if a.Reason != want.Reason || a.Remaining != want.Remaining || a.Receipt != (headgate.Receipt{}) {
					t.Fatalf("step %d, cost %d: single %+v, want %+v", step, cost, a, want)
				}
				receipt := b.Receipt
				b.Receipt = headgate.Receipt{}
				if a != b || receipt.Empty() && receipt != (headgate.Receipt{}) || !receipt.Empty() && receipt.Cost != cost {
					b.Receipt = receipt
					t.Fatalf("step %d, cost %d: single %+v, keyed %+v", step, cost, a, b)
				}
			}
		})
	}
}

// TestSingleConcurrency checks that concurrent callers do not get the same unit.
func TestSingleConcurrency(t *testing.T) {
	clock := storetest.NewClock()
	for _, l := range []headgate.Limit{{Count: 1000, Per: time.Hour}, {Count: 1001, Per: time.Hour}} {
		single, err := limiter.NewSingle(l, limiter.Config{Clock: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		var passed atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 500 {
					var d headgate.Decision
					if err := single.Take(1, &d); err == nil && d.Verdict == headgate.Allow {
						passed.Add(1)
					}
				}
			})
		}
		all.Wait()
		if passed.Load() != l.Count {
			t.Errorf("%d units passed under the limit %s", passed.Load(), l)
		}
	}
}

func TestManyAndReturn(t *testing.T) {
	clock := storetest.NewClock()
	keyed, err := limiter.New(headgate.Limit{Count: 1, Per: time.Minute}, limiter.Config{Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = fmt.Sprint(i % 50)
	}
	ds := make([]headgate.Decision, len(keys))
	if err := keyed.TakeMany(t.Context(), keys, 1, ds); err != nil {
		t.Fatal(err)
	}
	for i, d := range ds {
		if (d.Verdict == headgate.Allow) != (i < 50) {
			t.Errorf("key %d: %v", i, d.Verdict)
		}
	}
	if err := keyed.Return(t.Context(), ds[7].Receipt, ds[8].Receipt); err != nil {
		t.Fatal(err)
	}
	var d headgate.Decision
	if err := keyed.Take(t.Context(), "7", 1, &d); err != nil || d.Verdict != headgate.Allow {
		t.Errorf("taking a returned unit gives %v, %v; want allow", d.Verdict, err)
	}
	if keyed.Stats().Used != 50 {
		t.Errorf("%d slots are in use, want 50", keyed.Stats().Used)
	}
}

func TestFaults(t *testing.T) {
	if _, err := limiter.New(headgate.Limit{Count: 1}, limiter.Config{}); err == nil {
		t.Error("New accepted a limit without a period")
	}
	if _, err := limiter.New(headgate.Limit{Count: 1, Per: time.Second}, limiter.Config{MaxMemory: 1}); err == nil {
		t.Error("New accepted a MaxMemory of one byte")
	}
	if _, err := limiter.NewSingle(headgate.Limit{Count: 1}, limiter.Config{}); err == nil {
		t.Error("NewSingle accepted a limit without a period")
	}
	single, err := limiter.NewSingle(headgate.Limit{Count: 1, Per: time.Second}, limiter.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{-1, headgate.MaxUnits + 1} {
		if err := single.Take(n, new(headgate.Decision)); !errors.Is(err, headgate.ErrBadCost) {
			t.Errorf("cost %d: %v", n, err)
		}
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	clock := storetest.NewClock()
	for name, c := range configs(clock) {
		single, err := limiter.NewSingle(c.limit, c.config)
		if err != nil {
			t.Fatal(err)
		}
		keyed, err := limiter.New(c.limit, c.config)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		if n := testing.AllocsPerRun(100, func() {
			var d headgate.Decision // d stays on the stack.
			_ = single.Take(1, &d)
			_ = single.Peek(1, &d)
			_ = keyed.Take(ctx, "k", 1, &d)
			_ = keyed.Peek(ctx, "k", 1, &d)
		}); n != 0 {
			t.Errorf("%s allocates %v times per call, want 0", name, n)
		}
	}
}

// TestSingleStepBack checks that a step back of an hour does not cause a wait of an hour.
func TestSingleStepBack(t *testing.T) {
	for _, l := range []headgate.Limit{{Count: 10, Per: time.Second}, {Count: 7, Per: time.Second}} {
		clock := storetest.NewClock()
		single, err := limiter.NewSingle(l, limiter.Config{Clock: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		var d headgate.Decision
		_ = single.Take(l.Count, &d)
		clock.Advance(-time.Hour)
		if _ = single.Take(1, &d); d.Verdict != headgate.Deny {
			t.Errorf("%s: a request passed right after the step back", l)
		}
		clock.Advance(time.Second)
		if _ = single.Take(1, &d); d.Verdict != headgate.Allow {
			t.Errorf("%s: a second after the step back the verdict is %v and RetryAfter is %v", l, d.Verdict, d.RetryAfter)
		}
	}
}
