//go:build !linux

package server

import (
	"errors"
	"syscall"
)

// canTryRead says that tryRead works on this system.
const canTryRead = false

func (c *conn) waitAndRead() (*transaction, error) { return nil, errors.ErrUnsupported }

func (c *conn) readNow() (*transaction, error) { return nil, errors.ErrUnsupported }

func (c *conn) tryRead(uintptr) bool { return true }

// CanTell says that Disconnected works on this system.
const CanTell = false

// Disconnected reports whether the peer of a socket has closed its side. This system does not report it.
func Disconnected(syscall.RawConn) bool { return false }
