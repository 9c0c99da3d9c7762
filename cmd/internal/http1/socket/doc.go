// Package socket reads from and writes to nonblocking stream sockets without the bookkeeping
// of the Go scheduler. The calls of package syscall tell the scheduler that the thread may
// block. When other processes use the same cores, its monitor then often takes the processor
// away from a goroutine that is only sending some bytes, and gives it to another thread. That
// costs more than the call itself (decision record 26). The calls of this package never block,
// so the scheduler need not know of them. Each moves a bounded number of bytes, because the
// garbage collector cannot stop a thread before its call returns.
//
// With the race detector, and on systems other than Linux, the calls are those of package
// syscall.
package socket
