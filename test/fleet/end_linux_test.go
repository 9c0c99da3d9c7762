package fleet

import "syscall"

// withParent ends a process when this one has ended.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
