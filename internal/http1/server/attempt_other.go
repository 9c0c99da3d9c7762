//go:build !linux

package server

import (
	"errors"
	"syscall"
)

// canAttempt says that attempt works on this system.
const canAttempt = false

func (c *conn) attempts() (*turn, error) { return nil, errors.ErrUnsupported }

func (c *conn) attempt(uintptr) bool { return true }

// Departed reports whether the peer of a socket has closed its side. This system does not tell.
func Departed(syscall.RawConn) bool { return false }
