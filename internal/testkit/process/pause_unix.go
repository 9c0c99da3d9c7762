//go:build unix

package process

import "syscall"

// The signals that stop a process without ending it, and let it go on.
const (
	Pause  = syscall.SIGSTOP
	Resume = syscall.SIGCONT
)
