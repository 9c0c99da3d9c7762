package redis_test

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// BenchmarkTake takes units of 10,000 keys with many concurrent callers. Server and client share one
// machine. docs/decisions/0003-contract-against-redis.md has earlier results of this benchmark.
func BenchmarkTake(b *testing.B) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%d", i)
	}
	for _, policy := range []headgate.Policy{
		{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 100, Per: time.Second}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: time.Second}},
	} {
		for _, callers := range []int{1, 64, 512} {
			b.Run(fmt.Sprintf("%s/%d", policy.Algorithm, callers), func(b *testing.B) {
				addr := testserver.Start(b).Addr
				client, store := newClient(b, addr), newStore(b, addr, nil)
				id, err := store.Prepare(policy)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				takeAll(b, store, id, keys, callers)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
				b.ReportMetric(scriptMicros(b, client), "script-µs")
			})
		}
	}
}

// BenchmarkFloor calls a script that does nothing. A decision that is sent in a separate call
// cannot be faster.
func BenchmarkFloor(b *testing.B) {
	nothing := rueidis.NewLuaScript("return {1, 2, 3, 4, 5, 6}")
	for _, callers := range []int{1, 64, 512} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			client := newClient(b, testserver.Start(b).Addr)
			b.ResetTimer()
			var all sync.WaitGroup
			for c := range callers {
				all.Go(func() {
					for i := c; i < b.N; i += callers {
						if err := nothing.Exec(b.Context(), client, []string{"hg1:{k}:0"}, []string{"", "1000"}).Error(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			b.ReportMetric(scriptMicros(b, client), "script-µs")
		})
	}
}

// scriptMicros gives the mean time of one call, in microseconds, as measured by the server.
func scriptMicros(b *testing.B, client rueidis.Client) float64 {
	b.Helper()
	stats, err := client.Do(b.Context(), client.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		b.Fatal(err)
	}
	found := regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`).FindStringSubmatch(stats)
	if found == nil {
		b.Fatalf("INFO commandstats has no evalsha: %s", stats)
	}
	micros, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return micros
}

// takeAll divides b.N takes among the callers.
func takeAll(b *testing.B, store headgate.Store, id headgate.PolicyID, keys []string, callers int) {
	b.Helper()
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			decisions := make([]headgate.Decision, 1)
			for i := c; i < b.N; i += callers {
				ops := []headgate.Op{{Key: keys[i*7919%len(keys)], Policy: id, Cost: 1}}
				if err := store.Apply(b.Context(), ops, decisions); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
