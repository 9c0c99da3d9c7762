package fairshare

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// crowd returns a limiter with n known clients.
func crowd(tb testing.TB, n int, capacity int64) (*Limiter, []string) {
	tb.Helper()
	names, weights := make([]string, n), make(map[string]int64, n)
	for i := range names {
		names[i] = fmt.Sprintf("client-%04d", i)
		weights[names[i]] = 1
	}
	l, err := New(0, Config{
		Capacity: capacity, Cycle: time.Second, Reservation: 10, Weights: weights, NewClientsPerCycle: 10, ForgetAfter: 30, MaxClients: MostClients,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return l, names
}

// BenchmarkTake measures parallel decisions without reading a clock. A cycle passes during
// the benchmark.
func BenchmarkTake(b *testing.B) {
	for _, clients := range []int{4, 1000, 10_000} {
		for _, kind := range []struct {
			name     string
			capacity int64
		}{{"admitted", 1 << 40}, {"refused", 0}} {
			b.Run(fmt.Sprintf("clients=%d/%s", clients, kind.name), func(b *testing.B) {
				l, names := crowd(b, clients, kind.capacity)
				var workers atomic.Int64
				b.ReportAllocs()
				b.RunParallel(func(p *testing.PB) {
					i := int(workers.Add(1)) * 7919
					var now headgate.Instant
					for p.Next() {
						i++
						now += 50
						l.Take(now, Request{Client: names[i%len(names)], Cost: 1})
					}
				})
			})
		}
	}
}
