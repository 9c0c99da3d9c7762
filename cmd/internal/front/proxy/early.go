package proxy

import (
	"bufio"
	"errors"
	"net"
)

// early is the connection of a client that started another protocol before the upgrade
// was confirmed. The server has already buffered some bytes of the new protocol, and the
// reverse proxy reads only from the connection.
type early struct {
	net.Conn

	in *bufio.Reader
}

// Read implements io.Reader. It reads only buffered bytes from in. The server owns in,
// and treats the end of the client's input as the end of its request.
func (e early) Read(p []byte) (int, error) {
	if buffered := e.in.Buffered(); buffered > 0 {
		return e.in.Read(p[:min(len(p), buffered)])
	}
	return e.Conn.Read(p)
}

// CloseWrite closes the sending side of the connection.
func (e early) CloseWrite() error {
	if half, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
