//go:build !linux

package server

import "errors"

// canAttempt says that attempt works on this system.
const canAttempt = false

func (c *conn) attempts() (*turn, error) { return nil, errors.ErrUnsupported }

func (c *conn) attempt(uintptr) bool { return true }

// departed reports whether the client has closed its side. This system does not tell.
func (c *conn) departed() bool { return false }
