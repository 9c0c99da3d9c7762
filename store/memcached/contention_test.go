package memcached_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// TestProcessesOneItem: many processes write one item. Exactly the limit passes, and returned
// units pass once more. A bucket keeps returned units that may have refilled (see returnTokens
// in package limit).
func TestProcessesOneItem(t *testing.T) {
	for name, counters := range map[string]bool{"items": false, "counters": true} {
		t.Run(name, func(t *testing.T) {
			server := testserver.Start(t)
			for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingWindow} {
				policy := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 700, Per: 367 * 24 * time.Hour}}
				if a == headgate.FixedWindow {
					policy.Limit.Per = 24 * time.Hour // Counters work for up to 29 days.
				}
				if a == headgate.SlidingWindow {
					policy.SubWindows = 3
				}
				fight(t, server.Addr, policy, counters)
			}
		})
	}
}

func fight(t *testing.T, addr string, policy headgate.Policy, counters bool) {
	t.Helper()
	at := time.Now().Truncate(24 * time.Hour).Add(time.Hour)
	clock := func() headgate.Instant { return headgate.Instant(at.UnixNano()) }
	var stands, contended atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		store := newStore(t, memcached.Config{Servers: []string{addr}, Clock: clock, Counters: counters, Retries: 100})
		id := prepare(t, store, policy)
		for g := range 4 {
			all.Go(func() {
				for i := range 100 {
					d := make([]headgate.Decision, 1)
					err := store.Apply(t.Context(), []headgate.Op{{Key: policy.Algorithm.String(), Policy: id, Cost: 1}}, d)
					switch {
					case errors.Is(err, memcached.ErrContended):
						contended.Add(1)
					case err != nil:
						t.Error(err)
					case d[0].Verdict == headgate.Deny:
					case i%5 == 0 && g%2 == 0:
						r := []headgate.Receipt{d[0].Receipt, d[0].Receipt}
						if err := store.Return(t.Context(), r); err != nil {
							t.Error(err)
						}
					default:
						stands.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	least := int64(700)
	if policy.Algorithm == headgate.TokenBucket {
		least = 600
	}
	if got := stands.Load(); got > 700 || got < least {
		t.Errorf("%s: %d units stand of a limit of 700 (%d were not decided)", policy.Algorithm, got, contended.Load())
	}
}

// TestContended: another process always writes first. After the retries, the error is
// ErrContended, and no units were taken.
func TestContended(t *testing.T) {
	server, way := testserver.Start(t), &tap{}
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Dial: way.dial, Retries: 5})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Hour}})
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 3})
	tries := 0
	way.on(func(written []byte) {
		for _, name := range writesTo(written) {
			tries++
			say(t, server.Addr, "append "+name+" 0 0 0\r\n") // An append of nothing still makes a new version.
		}
	})
	err := store.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1))
	way.on(nil)
	if !errors.Is(err, memcached.ErrContended) {
		t.Fatalf("an item that always changes: %v, want ErrContended", err)
	}
	if st := store.Stats()[0]; tries != 6 || st.Conflicts != 6 || st.Exhausted != 1 {
		t.Errorf("%d tries, %d conflicts and %d given up: want 6, 6 and 1", tries, st.Conflicts, st.Exhausted)
	}
	if left := remaining(t, store, "k", id); left != 7 {
		t.Errorf("%d remain, want 7", left)
	}
}

// TestOvertakenGroup: a group passes when it is tried, and then another process uses up its
// second key. The units of its first key are returned.
func TestOvertakenGroup(t *testing.T) {
	for name, counters := range map[string]bool{"items": false, "counters": true} {
		t.Run(name, func(t *testing.T) {
			server, way := testserver.Start(t), &tap{}
			config := memcached.Config{Servers: []string{server.Addr}, Counters: counters}
			other := newStore(t, config)
			config.Dial = way.dial
			store := newStore(t, config)
			policy := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Per: 24 * time.Hour}}
			ban := headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 50, Per: time.Hour}, BanFor: time.Hour}
			id, theirs, bans := prepare(t, store, policy), prepare(t, other, policy), prepare(t, store, ban)
			// The parts are taken in the order of their digests, so either key may be the second.
			var once sync.Once
			apply(t, store, headgate.Op{Key: "x", Policy: id, Cost: 1}, headgate.Op{Key: "y", Policy: id, Cost: 1})
			way.on(func(written []byte) {
				if len(writesTo(written)) == 0 && string(written[:2]) != "ma" {
					return
				}
				once.Do(func() {
					for _, key := range []string{"x", "y"} {
						apply(t, other, headgate.Op{Key: key, Policy: theirs, Cost: 2})
					}
				})
			})
			ds := apply(t, store, headgate.Op{Key: "x", Policy: id, Cost: 4}, headgate.Op{Key: "y", Policy: id, Cost: 4},
				headgate.Op{Key: "x", Policy: bans, Window: 1, Cost: 1})
			way.on(nil)
			if ds[0].Verdict != headgate.Deny && ds[1].Verdict != headgate.Deny {
				t.Errorf("4 of 2 passed under both keys: %+v", ds)
			}
			for i, d := range ds {
				if !d.Receipt.Empty() {
					t.Errorf("op %d of a refused group has the receipt %+v", i, d.Receipt)
				}
			}
			for _, key := range []string{"x", "y"} {
				if left := remaining(t, store, key, id); left != 2 {
					t.Errorf("%d remain under %s, want 2", left, key)
				}
			}
			if d := apply(t, store, headgate.Op{Key: "x", Policy: bans, Window: 1, Kind: headgate.Peek})[0]; d.Remaining != 49 {
				t.Errorf("the ban has %d attempts left, want 49", d.Remaining)
			}
		})
	}
}

// TestGroupCommit: decisions that wait for one key are made together. Many callers need far
// fewer writes than decisions.
func TestGroupCommit(t *testing.T) {
	server, way := testserver.Start(t), &tap{}
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Dial: way.dial})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: 24 * time.Hour}})
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1})
	var writes atomic.Int64
	way.on(func(written []byte) { writes.Add(int64(len(writesTo(written)))) })
	server.Pause()
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() { apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1}) })
	}
	pause(100 * time.Millisecond) // Later callers only cause more writes.
	server.Resume()
	all.Wait()
	if left := remaining(t, store, "k", id); left != 799 {
		t.Errorf("%d remain, want 799", left)
	}
	if n := writes.Load(); n > 20 {
		t.Errorf("200 decisions that came at once took %d writes", n)
	}
}

// TestLeftBeforeItsTurn: a caller that leaves while it waits for a key takes nothing.
func TestLeftBeforeItsTurn(t *testing.T) {
	server := testserver.Start(t)
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100, Per: 24 * time.Hour}})
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1})
	server.Pause()
	var all sync.WaitGroup
	all.Go(func() { apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1}) })
	pause(20 * time.Millisecond) // This caller is then the first in flight. The test also holds if another caller is the first.
	for range 10 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			err := store.Apply(ctx, []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a paused server: %v, want DeadlineExceeded", err)
			}
		})
	}
	pause(200 * time.Millisecond)
	server.Resume()
	all.Wait()
	if left := remaining(t, store, "k", id); left != 98 {
		t.Errorf("%d remain, want 98: one was taken, and ten had left", left)
	}
}
