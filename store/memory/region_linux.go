//go:build linux && !race

package memory

import "syscall"

// lazily is the mmap flag that reserves no swap: most of a table is never used.
const lazily = syscall.MAP_NORESERVE

func advise(bytes []byte) { _ = syscall.Madvise(bytes, syscall.MADV_NOHUGEPAGE) }
