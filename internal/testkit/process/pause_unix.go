//go:build unix

package process

import "syscall"

// The signals that stop and continue a process.
const (
	Pause  = syscall.SIGSTOP
	Resume = syscall.SIGCONT
)
