package script_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/limit/twin"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/storetest"
)

// edgePolicies gives policies with the largest numbers that Compile accepts, and typical policies.
func edgePolicies() []headgate.Policy {
	buckets := []headgate.Policy{
		{Limit: headgate.Limit{Count: 10, Per: time.Second}, MaxWait: 300 * time.Millisecond},
		{Limit: headgate.Limit{Count: 7, Per: 3 * time.Second, Burst: 3}},
		{Limit: headgate.Limit{Count: 66_000_001, Per: time.Second}},
		{Limit: headgate.Limit{Count: 1_000_003, Per: time.Second, Burst: 3_000_000_000}, MaxWait: 20 * time.Minute},
		{Limit: headgate.Limit{Count: 100_000_000, Per: time.Second, Burst: 5}},
		{Limit: headgate.Limit{Count: 1, Per: 366 * 24 * time.Hour, Burst: 49}},
		{Limit: headgate.Limit{Count: 999_983, Per: 999_999_937 * time.Nanosecond}},
		{Limit: headgate.Limit{Count: 1_000_000, Per: time.Second, Burst: 1_500_000_000_000_000}},
	}
	all := buckets
	for _, p := range buckets {
		p.Algorithm = headgate.LeakyBucket
		all = append(all, p)
	}
	const most = 1 << 51
	return append(
		all,
		headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: most / 257, Per: limit.MaxPer}, SubWindows: 256},
		headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: most / 2, Per: 999_983 * time.Microsecond}, SubWindows: 1},
		headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: most / 8, Per: 7 * time.Microsecond}, SubWindows: 7},
		headgate.Policy{
			Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 999_999_999_989, Per: 999_999_937 * time.Microsecond},
			SubWindows: 37, CountRejected: true,
		},
		headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: headgate.MaxUnits, Per: time.Microsecond}},
		headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: headgate.MaxUnits / 8, Per: limit.MaxPer}, BanFor: limit.MaxPer},
		headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1 << 15, Per: limit.MaxPer}},
	)
}

// TestExactAtTheBounds compares decisions of random requests with the twin, which uses exact
// fractions.
func TestExactAtTheBounds(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	for i, policy := range edgePolicies() {
		t.Run(fmt.Sprint(policy.Algorithm, policy.Limit), func(t *testing.T) {
			clock := storetest.NewClock()
			store := newStore(t, client, 0, clock.Now)
			id, err := store.Prepare(policy)
			if err != nil {
				t.Fatal(err)
			}
			r, exact := rand.New(rand.NewPCG(uint64(i), 1)), twin.New(policy)
			room, bounded := max(policy.Limit.Burst, policy.Limit.Count/2), policy.Algorithm <= headgate.LeakyBucket
			steps := 400
			if policy.Limit.Per > 30*24*time.Hour {
				steps = 80 // More steps would reach 2112, the end of supported times.
			}
			for step := range steps {
				if r.IntN(2) == 0 {
					clock.Advance(time.Duration(r.Int64N(int64(policy.Limit.Per)/int64(time.Microsecond)+2)) * time.Microsecond)
				}
				mode := headgate.OpKind(r.IntN(3))
				if !bounded {
					mode = headgate.OpKind(r.IntN(2))
				}
				op := headgate.Op{Key: fmt.Sprint("edge", i), Policy: id, Kind: mode, Cost: r.Int64N(room/(1+r.Int64N(room)) + 1)}
				got, want := apply(t, store, op)[0], exact.Do(clock.Now(), op.Cost, op.Kind)
				timed := bounded || policy.Algorithm == headgate.Ban
				if got.Verdict != want.Verdict || got.Reason != want.Reason || got.Remaining != want.Remaining ||
					timed && (late(got.RetryAfter, want.Retry) || late(got.ResetAfter, want.Reset)) {
					t.Fatalf("step %d, %+v:\n got %+v\nwant %+v", step, op, got, want)
				}
				if got.Reason == headgate.OverLimit && !timed {
					passesThen(t, store, clock, op, got.RetryAfter)
				}
			}
		})
	}
}

// passesThen checks that a refused Op passes after RetryAfter, and not a microsecond before. It moves
// the clock forth and back, and uses Peeks.
func passesThen(t *testing.T, s headgate.Store, clock *storetest.Clock, op headgate.Op, retry time.Duration) {
	t.Helper()
	op.Kind = headgate.Peek
	clock.Advance(retry)
	if d := apply(t, s, op)[0]; d.Verdict != headgate.Allow {
		t.Errorf("%+v after RetryAfter: got %+v, want Allow", op, d)
	}
	clock.Advance(-time.Microsecond)
	if d := apply(t, s, op)[0]; d.Verdict == headgate.Allow {
		t.Errorf("%+v a microsecond before RetryAfter (%v): got %+v, want Deny", op, retry, d)
	}
	clock.Advance(time.Microsecond - retry)
}

// TestChangedLimitKeepsUse compares the used units of a bucket after a change of its Count with the
// twin, which uses exact fractions.
func TestChangedLimitKeepsUse(t *testing.T) {
	s := newStore(t, newClient(t, testserver.Start(t).Addr), 0, nil)
	r := rand.New(rand.NewPCG(3, 3))
	for n := range 700 {
		clock := storetest.NewClock()
		s.clock = clock.Now
		from, to := randomBucket(r), randomBucket(r)
		to.Limit.Per = from.Limit.Per
		exact, key := twin.New(from), fmt.Sprint(n)
		ids := [2]headgate.PolicyID{}
		for i, p := range []headgate.Policy{from, to} {
			id, err := s.Prepare(p)
			if err != nil {
				t.Fatal(err)
			}
			ids[i] = id
		}
		cost := 1 + r.Int64N(from.Limit.Count)
		apply(t, s, headgate.Op{Key: key, Policy: ids[0], Cost: cost})
		exact.Do(clock.Now(), cost, headgate.Take)
		if r.IntN(2) == 0 {
			clock.Advance(time.Duration(r.Int64N(int64(from.Limit.Per)/1000)) * time.Microsecond)
		}
		exact.Change(to, clock.Now())
		got := apply(t, s, headgate.Op{Key: key, Policy: ids[1]})[0]
		want := exact.Do(clock.Now(), 0, headgate.Take)
		if late(got.ResetAfter, want.Reset) || got.Remaining != want.Remaining {
			t.Fatalf("%d units of %s, changed to %s: got ResetAfter %v and %d remaining, want %v and %d", cost, from.Limit, to.Limit, got.ResetAfter, got.Remaining, want.Reset, want.Remaining)
		}
	}
}

func randomBucket(r *rand.Rand) headgate.Policy {
	return headgate.Policy{Limit: headgate.Limit{
		Count: 1 + r.Int64N(1<<(1+r.IntN(20))), Per: time.Duration(1+r.Int64N(1<<(1+r.IntN(22)))) * time.Millisecond,
	}}
}
