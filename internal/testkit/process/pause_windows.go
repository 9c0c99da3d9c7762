package process

import "syscall"

// The signals that stop and continue a process. Windows has no such signals, and a test that
// sends them fails. The servers of these tests run on Linux.
const (
	Pause  = syscall.Signal(0x13)
	Resume = syscall.Signal(0x12)
)
