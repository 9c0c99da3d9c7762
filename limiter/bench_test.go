package limiter_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limiter"
)

// BenchmarkKeyed takes from one key, for each kind of bucket decision.
func BenchmarkKeyed(b *testing.B) {
	for name, l := range map[string]headgate.Limit{
		"whole":           {Count: 1_000_000_000, Per: time.Second},
		"refused":         {Count: 1, Per: time.Hour},
		"fraction":        {Count: 900_000_000, Per: time.Second},
		"fractionRefused": {Count: 7, Per: time.Hour},
	} {
		b.Run(name, func(b *testing.B) {
			k, err := limiter.New(l, limiter.Config{})
			if err != nil {
				b.Fatal(err)
			}
			ctx := b.Context()
			b.ReportAllocs()
			var d headgate.Decision
			for b.Loop() {
				if err := k.Take(ctx, "client-000000", 1, &d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
