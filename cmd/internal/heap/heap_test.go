package heap

import (
	"runtime"
	"testing"
)

// TestAfterCollection: each collection calls the function once, until the test ends.
func TestAfterCollection(t *testing.T) {
	collected := make(chan struct{}, 1)
	AfterCollection(func() bool {
		select {
		case collected <- struct{}{}:
		default: // The test is over.
		}
		return true
	})
	for range 3 {
		runtime.GC()
		<-collected
	}
	if objects, stacks := Live(); objects == 0 || stacks == 0 {
		t.Errorf("the live heap is %d, and %d of stacks, want more", objects, stacks)
	}
	before, kept := InUse(), make([]byte, 8<<20)
	if got := InUse(); got < before+int64(len(kept))/2 {
		t.Errorf("the heap in use is %d after 8 MiB more than %d", got, before)
	}
	runtime.KeepAlive(kept)
}
