//go:build unix

package fifo

import "syscall"

// Make makes a named pipe that its owner may read and write.
func Make(path string) error { return syscall.Mkfifo(path, 0o600) }
