package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// keys lists the keys on the server.
func keys(tb testing.TB, client rueidis.Client) []string {
	tb.Helper()
	all, err := client.Do(tb.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// TestServersClock: without a clock of its own, a store decides by the server's clock in whole
// microseconds.
func TestServersClock(t *testing.T) {
	store := newStore(t, testserver.Start(t).Addr, nil)
	id, err := store.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Second, Burst: 3}})
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Microsecond)
	d := apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 3})[0]
	if at := d.At.Time(); at.Before(before) || at.After(time.Now()) || d.At%1000 != 0 {
		t.Errorf("decided at %v, want a whole microsecond after %v", at, before)
	}
	for d.Verdict == headgate.Allow {
		d = apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 3})[0]
	}
	for d.Verdict == headgate.Deny { // The bucket refills with the server's clock.
		d = apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1})[0]
	}
}

// TestRefundMakesNoKey: a Refund of a new key stores nothing.
func TestRefundMakesNoKey(t *testing.T) {
	server := testserver.Start(t)
	client, store := newClient(t, server.Addr), newStore(t, server.Addr, nil)
	for _, p := range []headgate.Policy{
		{Limit: headgate.Limit{Count: 3, Per: time.Minute}},
		{Limit: headgate.Limit{Count: 0, Per: time.Minute}},
		{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 3, Per: time.Minute}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 3, Per: time.Minute}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 3000, Per: time.Minute}},
		{Algorithm: headgate.SlidingWindow, SubWindows: 4, Limit: headgate.Limit{Count: 3, Per: time.Minute}},
	} {
		id := prepare(t, store, p)
		op := headgate.Op{Key: "k", Policy: id, Window: uint8(p.Algorithm), Cost: 2, Kind: headgate.Refund}
		if d := apply(t, store, op)[0]; d.Verdict != headgate.Allow || d.Remaining != p.Limit.Count {
			t.Errorf("%s: a refund of a new key: %+v", p.Algorithm, d)
		}
	}
	if all := keys(t, client); len(all) > 0 {
		t.Errorf("refunds of new keys stored %q", all)
	}
}

// TestEveryKeyExpires: after any decision, each key has a time to live. It is at most 3 s longer than
// the period of the limit.
func TestEveryKeyExpires(t *testing.T) {
	server := testserver.Start(t)
	client, store := newClient(t, server.Addr), newStore(t, server.Addr, nil)
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.SlidingLog} {
		id, err := store.Prepare(headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 3, Per: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "b"} {
			for range 5 {
				d := apply(t, store, headgate.Op{Key: key, Policy: id, Window: uint8(a), Cost: 1})[0]
				if err := store.Return(t.Context(), []headgate.Receipt{d.Receipt}); err != nil {
					t.Fatal(err)
				}
				apply(t, store, headgate.Op{Key: key, Policy: id, Window: uint8(a), Cost: 1})
			}
		}
	}
	all := keys(t, client)
	if len(all) < 6 {
		t.Errorf("the server has %d keys, want at least 6: %q", len(all), all)
	}
	for _, key := range all {
		ttl, err := client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64()
		if err != nil || ttl <= 0 || ttl > 63_000 {
			t.Errorf("key %s has a time to live of %d ms (error %v), want 1 to 63000", key, ttl, err)
		}
		if !strings.HasPrefix(key, "hg3:{") {
			t.Errorf("key %q does not begin with hg3:{", key)
		}
	}
}

// TestLogIsBounded: refused attempts and returned units leave at most Count entries. A log of
// this length is a list.
func TestLogIsBounded(t *testing.T) {
	const count = 200
	b := newBench(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: count, Per: time.Hour}, CountRejected: true})
	for i := range 5 * count {
		b.clock.Advance(time.Microsecond)
		if d := b.take("attempts", 1); d.Verdict == headgate.Deny != (i >= count) {
			t.Fatalf("attempt %d: got %v, want Deny from attempt 200 on", i, d.Verdict)
		}
		b.giveBack(b.take("returned", 1).Receipt)
	}
	lists := 0
	for _, key := range keys(t, b.client) {
		kind, err := b.client.Do(t.Context(), b.client.B().Type().Key(key).Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		if kind != "list" {
			continue
		}
		lists++
		n, err := b.client.Do(t.Context(), b.client.B().Llen().Key(key).Build()).AsInt64()
		if err != nil || n > 2*count {
			t.Errorf("list %s has %d values (error %v), want at most two for each of %d units", key, n, err, count)
		}
	}
	if lists == 0 {
		t.Error("no log is a list, so the test checks nothing")
	}
}

// TestScriptsForgotten: a server without the scripts gets them again, for a single call and in a
// pipeline.
func TestScriptsForgotten(t *testing.T) {
	b := newBench(t, headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Hour}})
	forget := func() {
		if err := b.client.Do(t.Context(), b.client.B().ScriptFlush().Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	first := b.take("k", 1)
	forget()
	b.giveBack(first.Receipt)
	forget()
	var ops []headgate.Op
	for i := range uint8(10) {
		ops = append(ops, headgate.Op{Key: "k", Policy: b.id, Group: i, Cost: 2})
	}
	for i, d := range apply(t, b.store, ops...) {
		if want := 98 - 2*int64(i); d.Verdict != headgate.Allow || d.Remaining != want {
			t.Errorf("group %d: got %v and %d remaining, want Allow and %d", i, d.Verdict, d.Remaining, want)
		}
	}
}

// TestFaultsSayWhatToDo: errors contain the server's message and the next step.
func TestFaultsSayWhatToDo(t *testing.T) {
	server := testserver.Start(t)
	client, store := newClient(t, server.Addr), newStore(t, server.Addr, nil)
	id, err := store.Prepare(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 3, Per: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	fails := func(ctx context.Context, what, want string) error {
		t.Helper()
		err := store.Apply(ctx, []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", what, err, want)
		}
		return err
	}
	set := func(name, value string) {
		t.Helper()
		if err := client.Do(t.Context(), client.B().ConfigSet().ParameterValue().ParameterValue(name, value).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	set("maxmemory", "1")
	fails(t.Context(), "a full server", "raise maxmemory")
	set("maxmemory", "0")
	if err := store.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1)); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := fails(done, "a cancelled context", "store_timeout"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: got error %v, want context.Canceled in its chain", err)
	}
	server.Stop()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	fails(short, "no server", "the call may have been counted")
}

// TestOpenRefuses: Open refuses invalid configurations.
func TestOpenRefuses(t *testing.T) {
	for want, c := range map[string]redis.Config{
		"127.0.0.1:6379":    {},
		"without a cluster": {Client: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}, Slots: 16},
		"16384":             {Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}, Slots: 20_000},
	} {
		if _, err := redis.Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%+v): got error %v, want %q", c, err, want)
		}
	}
}
