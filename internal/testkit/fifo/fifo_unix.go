//go:build unix

package fifo

import "syscall"

// Make creates a named pipe that only its owner can read and write.
func Make(path string) error { return syscall.Mkfifo(path, 0o600) }
