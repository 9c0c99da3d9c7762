package memcached_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// BenchmarkTake takes over 10,000 keys with many concurrent callers. Server and client share one
// machine. The scene is that of store/redis.
func BenchmarkTake(b *testing.B) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%d", i)
	}
	for _, policy := range []headgate.Policy{
		{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 100, Per: time.Second}},
		{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 100, Per: time.Second}},
		{Algorithm: headgate.SlidingWindow, SubWindows: 10, Limit: headgate.Limit{Count: 100, Per: time.Second}},
	} {
		for _, callers := range []int{1, 64, 512} {
			b.Run(fmt.Sprintf("%s/%d", policy.Algorithm, callers), func(b *testing.B) {
				store := newStore(b, memcached.Config{Servers: []string{testserver.Start(b).Addr}})
				id := prepare(b, store, policy)
				apply(b, store, headgate.Op{Key: "first", Policy: id, Cost: 1}) // This decision finds the server's clock.
				b.ReportAllocs()
				b.ResetTimer()
				takeAll(b, store, keys, callers, headgate.Op{Policy: id, Cost: 1})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			})
		}
	}
}

// BenchmarkCounters is BenchmarkTake with a fixed window in counters.
func BenchmarkCounters(b *testing.B) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%d", i)
	}
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			store := newStore(b, memcached.Config{Servers: []string{testserver.Start(b).Addr}, Counters: true})
			id := prepare(b, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 100, Per: time.Second}})
			apply(b, store, headgate.Op{Key: "first", Policy: id, Cost: 1})
			b.ReportAllocs()
			b.ResetTimer()
			takeAll(b, store, keys, callers, headgate.Op{Policy: id, Cost: 1})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}

// BenchmarkOneKey decides one key in several stores, which stand for processes, with 16 callers
// each.
func BenchmarkOneKey(b *testing.B) {
	for _, processes := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(processes), func(b *testing.B) {
			server := testserver.Start(b)
			var stores []*memcached.Store
			var id headgate.PolicyID
			for range processes {
				store := newStore(b, memcached.Config{Servers: []string{server.Addr}})
				id = prepare(b, store, headgate.Policy{Limit: headgate.Limit{Count: 1e9, Per: time.Second}})
				apply(b, store, headgate.Op{Key: "first", Policy: id, Cost: 1})
				stores = append(stores, store)
			}
			var exhausted atomic.Int64
			b.ResetTimer()
			var all sync.WaitGroup
			for c := range 16 * processes {
				all.Go(func() {
					ops, decisions := []headgate.Op{{Key: "hot", Policy: id, Cost: 1}}, make([]headgate.Decision, 1)
					for i := c; i < b.N; i += 16 * processes {
						err := stores[c%processes].Apply(b.Context(), ops, decisions)
						if errors.Is(err, memcached.ErrContended) {
							exhausted.Add(1)
						} else if err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			conflicts := uint64(0)
			for _, s := range stores {
				conflicts += s.Stats()[0].Conflicts
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			b.ReportMetric(float64(conflicts)/float64(b.N), "conflicts/op")
			b.ReportMetric(float64(exhausted.Load())/float64(b.N), "exhausted/op")
		})
	}
}

// BenchmarkGroup decides single groups of several keys: one read of all items, and then a write
// for each.
func BenchmarkGroup(b *testing.B) {
	for _, keys := range []int{1, 2, 4} {
		for _, verdict := range []headgate.Verdict{headgate.Allow, headgate.Deny} {
			b.Run(fmt.Sprint(keys, "/", verdict), func(b *testing.B) {
				store := newStore(b, memcached.Config{Servers: []string{testserver.Start(b).Addr}})
				id := prepare(b, store, headgate.Policy{Limit: headgate.Limit{Count: 1 << 40, Per: 24 * time.Hour}})
				full := prepare(b, store, headgate.Policy{Limit: headgate.Limit{Count: 1, Per: 24 * time.Hour}})
				ops := make([]headgate.Op, keys)
				for i := range ops {
					ops[i] = headgate.Op{Key: fmt.Sprint(i), Policy: id, Cost: 1}
				}
				if verdict == headgate.Deny {
					ops[0].Policy = full
				}
				apply(b, store, ops...)
				decisions := make([]headgate.Decision, keys)
				for b.Loop() {
					if err := store.Apply(b.Context(), ops, decisions); err != nil || decisions[0].Verdict != verdict {
						b.Fatal(err, decisions[0].Verdict)
					}
				}
			})
		}
	}
}

// takeAll divides b.N takes among the callers.
func takeAll(b *testing.B, store headgate.Store, keys []string, callers int, op headgate.Op) {
	b.Helper()
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			decisions, ops := make([]headgate.Decision, 1), []headgate.Op{op}
			for i := c; i < b.N; i += callers {
				ops[0].Key = keys[i*7919%len(keys)]
				if err := store.Apply(b.Context(), ops, decisions); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
