//go:build linux && !race

package memory

import "syscall"

// lazily lets the system promise more than it has: most of a table is never used.
const lazily = syscall.MAP_NORESERVE

func advise(bytes []byte) { _ = syscall.Madvise(bytes, syscall.MADV_NOHUGEPAGE) }
