package redis_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/limit/twin"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/redis"
	"github.com/headgate/headgate/store/storetest"
)

// edgePolicies are buckets whose numbers are as great as Prepare lets them be, and
// ordinary ones.
func edgePolicies() []headgate.Policy {
	return []headgate.Policy{
		{Limit: headgate.Limit{Count: 10, Per: time.Second}, MaxWait: 300 * time.Millisecond},
		{Limit: headgate.Limit{Count: 7, Per: 3 * time.Second, Burst: 3}},
		{Limit: headgate.Limit{Count: 66_000_001, Per: time.Second}},
		{Limit: headgate.Limit{Count: 1_000_003, Per: time.Second, Burst: 3_000_000_000}, MaxWait: 20 * time.Minute},
		{Limit: headgate.Limit{Count: 100_000_000, Per: time.Second, Burst: 5}},
		{Limit: headgate.Limit{Count: 1, Per: 366 * 24 * time.Hour, Burst: 49}},
		{Limit: headgate.Limit{Count: 999_983, Per: 999_999_937 * time.Nanosecond}},
	}
}

// TestExactAtTheBounds plays random traffic against fractions of any length.
func TestExactAtTheBounds(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	for i, policy := range edgePolicies() {
		t.Run(policy.Limit.String(), func(t *testing.T) {
			clock := storetest.NewClock()
			store := newStore(t, redis.Config{Client: client, Clock: clock.Now})
			id, err := store.Prepare(policy)
			if err != nil {
				t.Fatal(err)
			}
			r, exact := rand.New(rand.NewPCG(uint64(i), 1)), twin.New(policy)
			room := max(policy.Limit.Burst, policy.Limit.Count/2)
			for step := range 500 {
				if r.IntN(2) == 0 {
					clock.Advance(time.Duration(r.Int64N(int64(policy.Limit.Per)/1000+2)) * time.Microsecond)
				}
				op := headgate.Op{Key: fmt.Sprint("edge", i), Policy: id, Mode: headgate.Mode(r.IntN(3)), Cost: r.Int64N(room/(1+r.Int64N(room)) + 1)}
				got, want := apply(t, store, op)[0], exact.Do(clock.Now(), op.Cost, op.Mode)
				if got.Verdict != want.Verdict || got.Reason != want.Reason || got.Remaining != want.Remaining ||
					late(got.RetryAfter, want.Retry) || late(got.ResetAfter, want.Reset) {
					t.Fatalf("step %d, %+v:\n got %+v\nwant %+v", step, op, got, want)
				}
			}
		})
	}
}

// late: a store that counts in microseconds rounds up to the next one.
func late(got, want time.Duration) bool { return got < want || got-want >= time.Microsecond }

// TestSameAsMemory plays takes, bookings, looks and returns on both stores: the
// scripts keep what limit's steps keep.
func TestSameAsMemory(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	policies := []headgate.Policy{
		{Limit: headgate.Limit{Count: 10, Per: time.Second}, MaxWait: 300 * time.Millisecond},
		{Limit: headgate.Limit{Count: 7, Per: 3 * time.Second, Burst: 30}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 6, Per: time.Second}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 6, Per: time.Second}, CountRejected: true},
	}
	for _, policy := range policies {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s %s %d", policy.Algorithm, policy.Limit, seed), func(t *testing.T) {
				flush(t, client)
				clock := storetest.NewClock()
				local, err := memory.New(memory.Config{Clock: clock.Now})
				if err != nil {
					t.Fatal(err)
				}
				p := &pair{t: t, clock: clock, stores: [2]headgate.Store{local, newStore(t, redis.Config{Client: client, Clock: clock.Now})}}
				p.play(policy, rand.New(rand.NewPCG(seed, 11)))
			})
		}
	}
}

// pair is two stores that are asked the same.
type pair struct {
	t      *testing.T
	clock  *storetest.Clock
	stores [2]headgate.Store
	taken  [][2]headgate.Receipt
}

func (p *pair) play(policy headgate.Policy, r *rand.Rand) {
	p.t.Helper()
	var ids [2]headgate.PolicyID
	for i, s := range p.stores {
		id, err := s.Prepare(policy)
		if err != nil {
			p.t.Fatal(err)
		}
		ids[i] = id
	}
	for step := range 300 {
		p.clock.Advance(time.Duration(r.IntN(2)*r.IntN(400_000)) * time.Microsecond)
		if r.IntN(3) == 0 && len(p.taken) > 0 {
			p.giveBack(policy, p.taken[r.IntN(len(p.taken))])
			continue
		}
		mode := headgate.Mode(r.IntN(3))
		if policy.Algorithm == headgate.SlidingLog {
			mode = headgate.Mode(r.IntN(2))
		}
		op := headgate.Op{Key: "k", Cost: r.Int64N(4), Mode: mode}
		var ds [2]headgate.Decision
		for i, s := range p.stores {
			op.Policy = ids[i]
			ds[i] = apply(p.t, s, op)[0]
		}
		if ds[0].Receipt.Empty() != ds[1].Receipt.Empty() {
			p.t.Fatalf("step %d, %+v: a receipt of one store alone: %+v, %+v", step, op, ds[0], ds[1])
		}
		if !ds[0].Receipt.Empty() {
			p.taken = append(p.taken, [2]headgate.Receipt{ds[0].Receipt, ds[1].Receipt})
		}
		ds[0].Receipt, ds[1].Receipt = headgate.Receipt{}, headgate.Receipt{}
		if late(ds[1].RetryAfter, ds[0].RetryAfter) || late(ds[1].ResetAfter, ds[0].ResetAfter) {
			p.t.Fatalf("step %d, %+v:\nmemory %+v\nredis  %+v", step, op, ds[0], ds[1])
		}
		for i := range ds {
			ds[i].RetryAfter, ds[i].ResetAfter = 0, 0
		}
		if ds[0] != ds[1] {
			p.t.Fatalf("step %d, %+v:\nmemory %+v\nredis  %+v", step, op, ds[0], ds[1])
		}
	}
}

// giveBack returns a take to both stores. A bucket in memory counts what comes too
// late among the units returned, which costs later receipts a little; on Redis it
// is passed over, so such receipts are no case for a comparison.
func (p *pair) giveBack(policy headgate.Policy, receipts [2]headgate.Receipt) {
	p.t.Helper()
	ends := receipts[0].From.Add(time.Duration(receipts[0].Cost) * policy.Limit.Per / time.Duration(policy.Limit.Count))
	if policy.Algorithm == headgate.TokenBucket && ends <= p.clock.Now() {
		return
	}
	for i, s := range p.stores {
		if err := s.Return(p.t.Context(), receipts[i:i+1]); err != nil {
			p.t.Fatal(err)
		}
	}
}

func apply(tb testing.TB, store headgate.Store, ops ...headgate.Op) []headgate.Decision {
	tb.Helper()
	decisions := make([]headgate.Decision, len(ops))
	if err := store.Apply(tb.Context(), ops, decisions); err != nil {
		tb.Fatalf("Apply(%+v): %v", ops, err)
	}
	return decisions
}
