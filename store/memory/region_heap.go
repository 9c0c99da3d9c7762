//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly) || race

package memory

// OutsideHeap reports whether the counters of a Store are outside the heap of the runtime.
// A memory limit (GOMEMLIMIT) must leave such memory to them.
const OutsideHeap = false

// reserve allocates on the heap. It is used on systems without mmap, and under the race
// detector, which does not watch mapped pages.
func reserve(n int, _ bool) ([]byte, error) { return make([]byte, n), nil }

func release([]byte) {}
