// Package heap reads what the garbage collector measures.
package heap

import (
	"runtime"
	"runtime/metrics"
)

// Live returns the size of the objects that the last collection has left, and of the stacks of goroutines, in bytes.
func Live() (objects, stacks int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()), int64(sample[1].Value.Uint64())
}

// InUse returns the size of all objects and of the stacks of goroutines, in bytes: live ones, and garbage that is not yet collected.
func InUse() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() + sample[1].Value.Uint64())
}

// AfterCollection calls f after each collection, as long as f returns true: a collection finalizes an object that nothing uses. f must
// not block.
func AfterCollection(f func() (goOn bool)) {
	mark := new([16]byte) // Too large for the allocator of tiny objects, which does not finalize reliably.
	runtime.SetFinalizer(mark, func(*[16]byte) {
		if f() {
			AfterCollection(f)
		}
	})
}
