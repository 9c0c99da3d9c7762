//go:build !race

package rls

import "testing"

// TestCallsAllocateLittle: the number of allocations does not depend on the number of descriptors.
func TestCallsAllocateLittle(t *testing.T) {
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
