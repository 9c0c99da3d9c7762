//go:build (linux || darwin || freebsd || netbsd || openbsd || dragonfly) && !race

package memory

import "syscall"

// OutsideHeap reports whether the counters of a Store are outside the heap of the runtime.
// A memory limit (GOMEMLIMIT) must leave such memory to them.
const OutsideHeap = true

// reserve maps pages. The system commits a page at the first write to it.
func reserve(n int, smallPages bool) ([]byte, error) {
	bytes, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|lazily)
	if err != nil {
		return nil, err
	}
	if smallPages || n <= smallRegion {
		advise(bytes)
	}
	return bytes, nil
}

// smallRegion is the size of the largest region in small pages: a huge page of 2 MiB would
// be a large part of it. A larger region is faster in huge pages.
const smallRegion = 96 << 20

// release unmaps the pages.
func release(bytes []byte) { _ = syscall.Munmap(bytes) }
