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

// keys lists what the server holds.
func keys(tb testing.TB, client rueidis.Client) []string {
	tb.Helper()
	all, err := client.Do(tb.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// TestServersClock: without a clock of its own a store decides by the server's, in
// whole microseconds.
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
	for d.Verdict == headgate.Deny { // It refills without anybody's help.
		d = apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1})[0]
	}
}

// TestEveryKeyExpires: whatever is decided, no key is left without a time to live,
// and none has one that is far from its use.
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
		t.Errorf("the server holds %d keys: %q", len(all), all)
	}
	for _, key := range all {
		ttl, err := client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64()
		if err != nil || ttl <= 0 || ttl > 63_000 {
			t.Errorf("%s lives for %d ms (%v)", key, ttl, err)
		}
		if !strings.HasPrefix(key, "hg3:{") {
			t.Errorf("%q is no name of this version", key)
		}
	}
}

// TestLogIsBounded: refused attempts, and units taken and returned, leave no more
// than Count entries behind. A log this long is a list.
func TestLogIsBounded(t *testing.T) {
	const count = 200
	b := newBench(t, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: count, Per: time.Hour}, CountRejected: true})
	for i := range 5 * count {
		b.clock.Advance(time.Microsecond)
		if d := b.take("attempts", 1); d.Verdict == headgate.Deny != (i >= count) {
			t.Fatalf("attempt %d: %v", i, d.Verdict)
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
			t.Errorf("%s holds %d values (%v), more than two for each of %d units", key, n, err, count)
		}
	}
	if lists == 0 {
		t.Error("no log is a list: this says nothing")
	}
}

// TestScriptsForgotten: a server that does not know the scripts is told them, alone
// and in a pipeline.
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
			t.Errorf("group %d: %v remaining %d, want %d", i, d.Verdict, d.Remaining, want)
		}
	}
}

// TestFaultsSayWhatToDo: what the server says is passed on, with what to do next.
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
			t.Errorf("%s: %v, want %q", what, err, want)
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
	if err := fails(done, "no time left", "store_timeout"); !errors.Is(err, context.Canceled) {
		t.Errorf("no time left: %v, want context.Canceled within", err)
	}
	server.Stop()
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	fails(short, "no server", "it may have been counted")
}

// TestOpenRefuses: what cannot be is refused when the store is made.
func TestOpenRefuses(t *testing.T) {
	for want, c := range map[string]redis.Config{
		"127.0.0.1:6379":    {},
		"without a cluster": {Client: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}, Slots: 16},
		"16384":             {Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}, Slots: 20_000},
	} {
		if _, err := redis.Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
