//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly) || race

package memory

// OutsideHeap tells whether the counters of a Store are memory that the runtime does not
// count: what a memory limit (GOMEMLIMIT) of the process has to leave to them.
const OutsideHeap = false

// reserve allocates on the heap: where the system has no pages of its own for a
// program, and under the race detector, which does not watch those.
func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

func release([]byte) {}
