package redis_test

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// slotTTL is short, because these tests wait for it. It is long enough for a machine that stands still for a second:
// a store renews its slots after a third of it.
const slotTTL = 1500 * time.Millisecond

func takeSlot(t *testing.T, store *redis.Store, limit int64) headgate.Decision {
	t.Helper()
	d, err := store.TakeSlot(t.Context(), headgate.SlotOp{Key: "k", Window: 253, Limit: limit, TTL: slotTTL})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// eventually waits until a slot is free, and gives the time that took.
func eventually(t *testing.T, store *redis.Store, limit int64) time.Duration {
	t.Helper()
	began := time.Now()
	until(t, "a free slot", func() bool {
		d := takeSlot(t, store, limit)
		if d.Verdict != headgate.Allow {
			return false
		}
		store.FreeSlot(d.Receipt)
		return true
	})
	return time.Since(began)
}

// TestSlotsOverInstances: two stores share the slots of a key, which stay taken while they are renewed.
func TestSlotsOverInstances(t *testing.T) {
	server := testserver.Start(t)
	one, two := newStore(t, server.Addr, nil), newStore(t, server.Addr, nil)
	first, second := takeSlot(t, one, 2), takeSlot(t, two, 2)
	if first.Remaining != 1 || second.Remaining != 0 {
		t.Errorf("after one and two of two slots, %d and %d remain", first.Remaining, second.Remaining)
	}
	began := time.Now()
	until(t, "the end of a TTL", func() bool {
		if d := takeSlot(t, one, 2); d.Verdict != headgate.Deny || d.Reason != headgate.InFlight || d.RetryAfter != 0 {
			t.Fatalf("a third slot after %v: %+v", time.Since(began), d)
		}
		return time.Since(began) > slotTTL*3/2
	})
	if d := takeSlot(t, one, 3); d.Verdict != headgate.Allow || d.Remaining != 0 { // another version of the rule
		t.Errorf("a third slot of three: %+v", d)
	} else {
		one.FreeSlot(d.Receipt)
	}
	one.FreeSlot(first.Receipt)
	if waited := eventually(t, two, 2); waited > slotTTL/2 {
		t.Errorf("a freed slot was free after %v", waited)
	}
	two.FreeSlot(second.Receipt)
	eventually(t, one, 1)
	all := keys(t, newClient(t, server.Addr))
	for _, key := range all {
		if !strings.HasPrefix(key, "hg3:{") || !strings.HasSuffix(key, ":253s") {
			t.Errorf("the key %s is not one of slots", key)
		}
	}
}

// A closed store's slots are free after their TTL, and the server keeps no key.
func TestSlotsOfTheDead(t *testing.T) {
	server := testserver.Start(t)
	dead, store := newStore(t, server.Addr, nil), newStore(t, server.Addr, nil)
	for range 3 {
		takeSlot(t, dead, 3)
	}
	dead.Close()
	if waited := eventually(t, store, 1); waited < slotTTL/3 || waited > 2*slotTTL {
		t.Errorf("the slots were free after %v, want about %v", waited, slotTTL)
	}
	client := newClient(t, server.Addr)
	until(t, "a server without keys", func() bool { return len(keys(t, client)) == 0 })
}

// After the server has lost its data, the slots come back with the next renewal.
func TestSlotsAfterLoss(t *testing.T) {
	server := testserver.Start(t)
	store, other := newStore(t, server.Addr, nil), newStore(t, server.Addr, nil)
	held := takeSlot(t, store, 1)
	client := newClient(t, server.Addr)
	flush(t, client)
	lost := time.Now()
	until(t, "the renewed slot", func() bool { return len(keys(t, client)) > 0 })
	if elapsed := time.Since(lost); elapsed > slotTTL {
		t.Errorf("the slot came back after %v, want within %v", elapsed, slotTTL)
	}
	if d := takeSlot(t, other, 1); d.Verdict != headgate.Deny {
		t.Errorf("a second slot: %+v", d)
	}
	store.FreeSlot(held.Receipt)
	eventually(t, other, 1)
}

// TestSlotsCutOff: the slots of a store that is cut off for longer than their TTL are free for others. When
// it is back, its slots count again.
func TestSlotsCutOff(t *testing.T) {
	server := testserver.Start(t)
	link := network.New(t, server.Addr)
	cut, other := newStore(t, link.Addr, nil), newStore(t, server.Addr, nil)
	held := takeSlot(t, cut, 1)
	link.HalfOpen()
	eventually(t, other, 1)
	link.Heal()
	until(t, "the slot of the store that is back", func() bool {
		d := takeSlot(t, other, 1)
		other.FreeSlot(d.Receipt)
		return d.Verdict == headgate.Deny
	})
	cut.FreeSlot(held.Receipt)
	eventually(t, other, 1)
}

// TestSlotsNeverAbove: many goroutines of several stores on a cluster never hold more than the limit.
func TestSlotsNeverAbove(t *testing.T) {
	cluster := testserver.StartCluster(t, 3, 0)
	const limit = 5
	var running, peak, passed atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		store := open(t, redis.Config{
			Kind: redis.Cluster, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}, Timeout: patience,
		})
		for range 8 {
			all.Go(func() {
				for range 100 {
					d, err := store.TakeSlot(t.Context(), headgate.SlotOp{Key: "k", Limit: limit, TTL: time.Minute})
					if err != nil {
						t.Error(err)
						return
					}
					if d.Verdict != headgate.Allow {
						continue
					}
					n := running.Add(1)
					passed.Add(1)
					for most := peak.Load(); n > most; most = peak.Load() {
						peak.CompareAndSwap(most, n)
					}
					runtime.Gosched()
					running.Add(-1)
					store.FreeSlot(d.Receipt)
				}
			})
		}
	}
	all.Wait()
	if peak.Load() > limit || passed.Load() < 100 {
		t.Errorf("%d requests were in flight at once, want at most %d; %d passed", peak.Load(), limit, passed.Load())
	}
}
