package rls_test

import (
	"strconv"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/front/rls"
	"github.com/headgate/headgate/store/memory"
)

// BenchmarkDecide decides requests of one and of a hundred descriptors of two entries, without gRPC.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			store, err := memory.New(memory.Config{MaxMemory: 16 << 20})
			if err != nil {
				b.Fatal(err)
			}
			g, err := guard.New(guard.Config{Store: store, Domains: []guard.Domain{{
				Name: "d", Descriptors: []guard.Descriptor{node("k", "", nil, node("path", "/a*", counted(1<<30, time.Hour)))},
			}}})
			if err != nil {
				b.Fatal(err)
			}
			s := rls.New(g, rls.Options{}, 0)
			all := make([]*commonv3.RateLimitDescriptor, n)
			for i := range all {
				all[i] = asked("k", strconv.Itoa(i), "path", "/a/b/c")
			}
			req := request("d", all...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.ShouldRateLimit(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/descriptor")
		})
	}
}
