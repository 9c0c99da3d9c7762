package fleet

import "syscall"

// withParent returns attributes that end a child process when this process ends.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
