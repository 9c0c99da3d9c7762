//go:build !unix

package socket

import (
	"errors"
	"net"
)

// Writer writes to a connection. On this system it never has one.
type Writer struct{}

// Use does nothing.
func (*Writer) Use(net.Conn) {}

// Known returns false.
func (*Writer) Known() bool { return false }

// Write fails.
func (*Writer) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

// WriteNow fails.
func (*Writer) WriteNow([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Last does nothing.
func (*Writer) Last() {}
