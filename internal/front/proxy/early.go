package proxy

import (
	"bufio"
	"errors"
	"net"
)

// early is the connection of a client that went on in another protocol before it
// was told that it may. The server has read some of that already, and the reverse
// proxy looks at the connection alone.
type early struct {
	net.Conn

	in *bufio.Reader
}

// Read implements io.Reader.
func (e early) Read(p []byte) (int, error) { return e.in.Read(p) }

// CloseWrite tells the client that nothing more comes.
func (e early) CloseWrite() error {
	if half, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
