package guard_test

import (
	"strconv"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// BenchmarkMany decides 100 requests of 100 clients, by 100 calls and by one call.
func BenchmarkMany(b *testing.B) {
	store, err := memory.New(memory.Config{MaxMemory: 16 << 20})
	if err != nil {
		b.Fatal(err)
	}
	g, err := guard.New(guard.Config{Rules: []guard.Rule{byClient(b, "a", "/a", perMinute(1_000_000_000))}, Store: store})
	if err != nil {
		b.Fatal(err)
	}
	requests, answers := make([]headgate.Request, 100), make([]guard.Answer, 100)
	for i := range requests {
		requests[i] = *request("/a", "client-"+strconv.Itoa(i))
	}
	b.Run("one by one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for i := range requests {
				if err := g.Decide(b.Context(), &requests[i], &answers[i]); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("together", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.DecideAll(b.Context(), requests, answers)
		}
	})
}
