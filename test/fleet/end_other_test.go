//go:build unix && !linux

package fleet

import "syscall"

// withParent has no way to end a process when this one has ended.
func withParent() *syscall.SysProcAttr { return nil }
