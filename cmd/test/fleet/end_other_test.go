//go:build unix && !linux

package fleet

import "syscall"

// withParent returns nil: only Linux can end a child process when this process ends.
func withParent() *syscall.SysProcAttr { return nil }
