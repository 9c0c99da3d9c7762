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

// BenchmarkTake is decisions over 10,000 keys by as many callers at once, server
// and client on one machine: the scene of reference measurement 3. What it says of
// the spike is in docs/decisions/0003-contract-against-redis.md.
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

// BenchmarkFloor is a script that does nothing, called as often: what no decision
// that is a call of its own can be faster than.
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

// scriptMicros is how long the server was busy with one call, by its own account.
func scriptMicros(b *testing.B, client rueidis.Client) float64 {
	b.Helper()
	stats, err := client.Do(b.Context(), client.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		b.Fatal(err)
	}
	found := regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`).FindStringSubmatch(stats)
	if found == nil {
		b.Fatalf("no evalsha in %s", stats)
	}
	micros, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return micros
}

// takeAll lets callers share b.N takes.
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
