package memory

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

// A Store keeps its counters outside the heap of the runtime, where the system allows. The
// garbage collector then does not count them, and only used pages take memory. A region
// holds no pointer.
//
// A region is released when the collector finds that its Store is unreachable. Each method
// of Store that reads a region therefore ends with runtime.KeepAlive: otherwise the
// collector could release the region before the last read.

// region is the memory of one Store. cut hands out its slices in order.
type region struct {
	bytes []byte
	used  uintptr
}

// lineBytes is the length of a cache line. Each slice begins with a new line.
const lineBytes = 64

// regionBytes gives the bytes that cut uses for n values of a size.
func regionBytes(n int, size uintptr) int64 {
	return (int64(n)*int64(size) + lineBytes - 1) / lineBytes * lineBytes
}

// newRegion reserves zeroed memory. The memory is released with its owner.
func newRegion(owner *Store, bytes int64, smallPages bool) (*region, error) {
	if bytes > math.MaxInt-lineBytes {
		return nil, fmt.Errorf("memory: %d bytes are more than this system can address: lower MaxMemory", bytes)
	}
	reserved, err := reserve(int(bytes+lineBytes), smallPages)
	if err != nil {
		return nil, fmt.Errorf("memory: reserve %d bytes: %w: lower MaxMemory, or raise the limit of address space", bytes, err)
	}
	runtime.AddCleanup(owner, release, reserved)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(reserved))) //nolint:gosec // because only the place within a line is taken of it.
	return &region{bytes: reserved, used: -start % lineBytes}, nil
}

// cut gives n zero values out of a region, which must be long enough. T holds no pointer.
func cut[T any](r *region, n int) []T {
	if n == 0 {
		return nil
	}
	var t T
	begin := r.used
	r.used += uintptr(regionBytes(n, unsafe.Sizeof(t)))
	_ = r.bytes[r.used-1]
	return unsafe.Slice((*T)(unsafe.Pointer(&r.bytes[begin])), n) //nolint:gosec // because the bytes are there, zero and aligned.
}
