package meta_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/meta"
	"github.com/headgate/headgate/internal/testkit/memcached"
)

// BenchmarkIncrement has several concurrent callers, with one increment in each Do.
func BenchmarkIncrement(b *testing.B) {
	for _, connections := range []int{1, 2} {
		for _, callers := range []int{1, 8, 64, 512} {
			b.Run(fmt.Sprintf("connections=%d/callers=%d", connections, callers), func(b *testing.B) {
				c := open(b, meta.Config{Addr: memcached.Start(b).Addr, Connections: connections})
				var group sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for k := range callers {
					group.Go(func() {
						r := []meta.Request{{
							Kind: meta.Increment, Key: fmt.Sprint("key", k), Delta: 1, Initial: 1, Create: true, TTL: time.Hour,
						}}
						var a [1]meta.Response
						for i := k; i < b.N; i += callers {
							if err := c.Do(b.Context(), r, a[:]); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
			})
		}
	}
}
