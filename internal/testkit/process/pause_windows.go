package process

import "syscall"

// The signals that stop a process without ending it, and let it go on. Windows has
// neither: a test that sends one fails. The servers of these tests run on Linux.
const (
	Pause  = syscall.Signal(0x13)
	Resume = syscall.Signal(0x12)
)
