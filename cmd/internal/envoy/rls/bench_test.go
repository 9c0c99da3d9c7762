package rls

import (
	"fmt"
	"strconv"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/testkit/race"
)

// BenchmarkDecide decides requests of one and of a hundred descriptors of two entries, without the
// transport of gRPC.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s, request := withTree(b, false), distinct(n)
			b.ReportAllocs()
			for b.Loop() {
				answered(b, s, request)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/descriptor")
		})
	}
}

// TestCallsAllocateLittle: the number of allocations does not depend on the number of descriptors.
func TestCallsAllocateLittle(t *testing.T) {
	if race.On {
		return // The race detector makes pools drop memory.
	}
	s := withTree(t, false)
	for _, n := range []int{1, 100} {
		request := distinct(n)
		if got := testing.AllocsPerRun(100, func() { answered(t, s, request) }); got > callAllocations {
			t.Errorf("%d descriptors: %v allocations, want at most %d", n, got, callAllocations)
		}
	}
}

// callAllocations bounds the allocations of a call: the copy of the request, the answer, the context of
// the store's deadline, and those of the test.
const callAllocations = 8

// distinct is a request with descriptors of two entries whose values differ.
func distinct(n int) []byte {
	entry := func(b []byte, value string) []byte {
		e := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "k")
		e = protowire.AppendString(protowire.AppendTag(e, 2, protowire.BytesType), value)
		return protowire.AppendBytes(protowire.AppendTag(b, fieldEntries, protowire.BytesType), e)
	}
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "d")
	for i := range n {
		one := entry(entry(nil, fmt.Sprint("client", i)), "/a/b/c")
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldDescriptors, protowire.BytesType), one)
	}
	return b
}
