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

// Read implements io.Reader. in gives what it holds and no more: it belongs to a
// server that takes the end of what the client sends for the end of its request.
func (e early) Read(p []byte) (int, error) {
	if held := e.in.Buffered(); held > 0 {
		return e.in.Read(p[:min(len(p), held)])
	}
	return e.Conn.Read(p)
}

// CloseWrite tells the client that nothing more comes.
func (e early) CloseWrite() error {
	if half, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
