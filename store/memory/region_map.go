//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package memory

import "syscall"

// OutsideHeap tells whether the counters of a Store are memory that the runtime does not
// count: what a memory limit (GOMEMLIMIT) of the process has to leave to them.
const OutsideHeap = true

// reserve asks the system for pages. They take memory when they are first written to.
func reserve(n int) ([]byte, error) {
	bytes, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|lazily)
	if err != nil {
		return nil, err
	}
	if n <= smallRegion {
		advise(bytes)
	}
	return bytes, nil
}

// smallRegion is the greatest region that takes its memory in small pages: a huge page of
// 2 MiB would be most of it. A larger one is faster in huge pages.
const smallRegion = 96 << 20

// release gives the pages back.
func release(bytes []byte) { _ = syscall.Munmap(bytes) }
