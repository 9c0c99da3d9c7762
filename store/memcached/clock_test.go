package memcached_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// TestServersClock: decisions use the server's clock, in whole microseconds. The clocks of all
// processes agree within the bound in Stats.
func TestServersClock(t *testing.T) {
	config := memcached.Config{Servers: []string{testserver.Start(t).Addr}}
	one, other := newStore(t, config), newStore(t, config)
	policy := headgate.Policy{Limit: headgate.Limit{Count: 5, Per: time.Hour}}
	id, theirs := prepare(t, one, policy), prepare(t, other, policy)
	// The first decision reads the time, which is exact to a second.
	d := apply(t, one, headgate.Op{Key: "k", Policy: id, Cost: 1})[0]
	if off := time.Since(d.At.Time()); off < -3*time.Second || off > 3*time.Second || d.At%1000 != 0 {
		t.Errorf("decided at %v, %v ago", d.At.Time(), off)
	}
	known := func(s *memcached.Store) time.Duration {
		st := s.Stats()[0]
		if !st.ClockKnown {
			return time.Hour
		}
		return st.ClockBound
	}
	until(t, "both know the server's clock to 10 ms", func() bool {
		return known(one) < 10*time.Millisecond && known(other) < 10*time.Millisecond
	})
	bound := known(one) + known(other)
	before := time.Now()
	a := apply(t, one, headgate.Op{Key: "k", Policy: id, Kind: headgate.Peek})[0]
	b := apply(t, other, headgate.Op{Key: "k", Policy: theirs, Kind: headgate.Peek})[0]
	if apart := b.At.Sub(a.At); apart < -bound || apart > bound+time.Since(before) {
		t.Errorf("two processes asked one after another decided at %v and %v, %v apart: they are sure to %v", a.At, b.At, apart, bound)
	}
	if off := one.Stats()[0].ClockOffset; off < -3*time.Second || off > 3*time.Second {
		t.Errorf("the server on this machine is %v ahead of it", off)
	}
}

// TestClocksApart: processes with different clocks never admit more than the limit, by the times
// of their decisions.
func TestClocksApart(t *testing.T) {
	server := testserver.Start(t)
	l := headgate.Limit{Count: 10, Per: 10 * time.Second}
	for _, policy := range []headgate.Policy{
		{Limit: l},
		{Algorithm: headgate.FixedWindow, Limit: l},
		{Algorithm: headgate.SlidingWindow, Limit: l, SubWindows: 5},
	} {
		for _, counters := range []bool{false, true} {
			for seed := range uint64(4) {
				flush(t, server.Addr)
				taken := takeApart(t, server.Addr, policy, counters, seed)
				judgeByAt(t, fmt.Sprintf("%s, seed %d", policy.Algorithm, seed), policy, taken)
			}
		}
	}
}

// takeApart lets three processes with clocks seconds apart take from one limit in turns. It
// gives the allowed decisions.
func takeApart(t *testing.T, addr string, policy headgate.Policy, counters bool, seed uint64) []headgate.Decision {
	t.Helper()
	r, now := rand.New(rand.NewPCG(seed, 5)), headgate.Instant(1_704_110_400_000_000_000)
	var stores []*memcached.Store
	var id headgate.PolicyID
	for _, off := range []time.Duration{0, 3 * time.Second, -4 * time.Second} {
		clock := func() headgate.Instant { return now.Add(off) }
		stores = append(stores, newStore(t, memcached.Config{Servers: []string{addr}, Clock: clock, Counters: counters}))
		id = prepare(t, stores[len(stores)-1], policy)
	}
	var taken []headgate.Decision
	for range 400 {
		now = now.Add(time.Duration(r.IntN(500)) * time.Millisecond)
		d := apply(t, stores[r.IntN(3)], headgate.Op{Key: "k", Policy: id, Cost: 1 + r.Int64N(3)})[0]
		if d.Verdict == headgate.Allow {
			taken = append(taken, d)
		}
	}
	return taken
}

// judgeByAt checks every interval that begins and ends with a decision.
func judgeByAt(t *testing.T, what string, policy headgate.Policy, taken []headgate.Decision) {
	t.Helper()
	if len(taken) < 50 {
		t.Errorf("%s: only %d passed", what, len(taken))
	}
	per := headgate.Instant(policy.Limit.Per)
	for _, from := range taken {
		for _, to := range taken {
			if to.At < from.At {
				continue
			}
			sum, most := int64(0), policy.Limit.Count
			for _, d := range taken {
				if d.At >= from.At && d.At <= to.At {
					sum += d.Receipt.Cost
				}
			}
			switch span := to.At - from.At; {
			case policy.Algorithm == headgate.TokenBucket:
				most += int64(span) * policy.Limit.Count / int64(per)
			case policy.Algorithm == headgate.FixedWindow && from.At/per != to.At/per:
				continue
			case policy.Algorithm == headgate.SlidingWindow && span > per-per/headgate.Instant(policy.SubWindows):
				continue // Only complete sub-windows are counted in full.
			}
			if sum > most {
				t.Fatalf("%s: %d units from %v to %v, more than %d", what, sum, from.At, to.At, most)
			}
		}
	}
}

// TestCountersInstead tests counters where they differ from the contract. A changed period
// starts with an empty count. After a step back of the clock, the earlier window still has its
// count. By the times of its decisions, no window exceeds the limit.
func TestCountersInstead(t *testing.T) {
	server, now := testserver.Start(t), headgate.Instant(1_704_110_400_000_000_000)
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Counters: true, Clock: func() headgate.Instant { return now }})
	policy := func(count int64, per time.Duration) headgate.PolicyID {
		return prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Per: per}})
	}
	id := policy(10, time.Minute)
	want := func(what string, id headgate.PolicyID, left int64) {
		t.Helper()
		if got := remaining(t, store, "k", id); got != left {
			t.Errorf("%s: %d remain, want %d", what, got, left)
		}
	}
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 6})
	want("a raised limit keeps what was used", policy(20, time.Minute), 14)
	want("a lowered limit keeps what was used", policy(8, time.Minute), 2)
	want("another period starts empty", policy(10, time.Hour), 10)
	now = now.Add(-time.Millisecond)
	want("an earlier window after a step back of the clock", id, 10)
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 3})
	now = now.Add(time.Millisecond)
	want("the later window after a step forward", id, 4)
	if d := apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 5})[0]; d.Verdict != headgate.Deny || d.RetryAfter != time.Minute {
		t.Errorf("5 of 4: %+v", d)
	}
	want("what does not pass is taken off again", id, 4)
	now = now.Add(-time.Millisecond)
	want("and back once more", id, 7)
}

// TestEveryItemDies: each item has a time to live, and none is much longer than its use.
func TestEveryItemDies(t *testing.T) {
	server := testserver.Start(t)
	for _, counters := range []bool{false, true} {
		store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Counters: counters})
		for w, p := range mixedPolicies() {
			p.Limit.Per = time.Minute
			if p.MaxWait > 0 {
				p.MaxWait = time.Second
			}
			op := headgate.Op{Key: fmt.Sprint(p.Algorithm), Policy: prepare(t, store, p), Window: uint8(w), Cost: 1}
			giveBack(t, store, apply(t, store, op)[0].Receipt)
			apply(t, store, op)
			if err := store.Forget(t.Context(), []headgate.Op{op}); err != nil {
				t.Fatal(err)
			}
			apply(t, store, op)
		}
	}
	now := time.Now().Unix()
	lines := say(t, server.Addr, "lru_crawler metadump hash")
	if len(lines) < 10 {
		t.Errorf("the server holds %d items", len(lines)-1)
	}
	for _, line := range lines[:len(lines)-1] {
		var name string
		var dies int64
		if _, err := fmt.Sscanf(strings.ReplaceAll(line, "=", " "), "key %s exp %d", &name, &dies); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		// Two windows of a minute, a minute for a note, and some seconds of slack.
		if dies < now+10 || dies > now+250 {
			t.Errorf("%s dies in %d s", name, dies-now)
		}
	}
}

// TestClockBackInGroups: after a long step back of the clock, a key is blocked for at most one
// window, also in groups of several keys.
func TestClockBackInGroups(t *testing.T) {
	server, now := testserver.Start(t), headgate.Instant(1_704_110_400_000_000_000)
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Clock: func() headgate.Instant { return now }})
	for i, policy := range mixedPolicies()[:5] {
		id := prepare(t, store, policy)
		ops := []headgate.Op{{Key: fmt.Sprint("x", i), Policy: id, Cost: 5}, {Key: fmt.Sprint("y", i), Policy: id, Cost: 5}}
		apply(t, store, ops...)
		now = now.Add(-12 * time.Hour)
		if ds := apply(t, store, ops...); ds[0].Verdict != headgate.Deny || ds[1].Verdict != headgate.Deny {
			t.Errorf("%s: at once after the step: %v and %v", policy.Algorithm, ds[0].Verdict, ds[1].Verdict)
		}
		now = now.Add(3 * time.Second)
		if ds := apply(t, store, ops...); ds[0].Verdict == headgate.Deny || ds[1].Verdict == headgate.Deny {
			t.Errorf("%s: three windows after the step: %v (%v) and %v", policy.Algorithm, ds[0].Verdict, ds[0].RetryAfter, ds[1].Verdict)
		}
	}
}
