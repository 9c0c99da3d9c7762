//go:build !linux

package listen

import "syscall"

// enableKeepAlive returns false: not all systems copy the options of a listening socket to accepted connections.
func enableKeepAlive(syscall.RawConn) bool { return false }
