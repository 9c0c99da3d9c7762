package proxy

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
)

// passed returns the bytes of the bodies that have passed: from the client, and to the client. A body of an upgraded connection is all
// that follows the heads.
func (x *exchange) passed() (received, sent int64) {
	if x.body != nil {
		received = x.body.received.Load()
	}
	if x.decision.Request.Method != http.MethodHead { // The server drops a body that is written for HEAD.
		sent = x.sent
	}
	if x.upgraded != nil {
		received, sent = received+x.upgraded.received.Load(), sent+x.upgraded.sent.Load()
	}
	return received, sent
}

// upgraded counts the bytes of an upgraded connection. It outlives the exchange, because a read may end later.
type upgraded struct{ received, sent atomic.Int64 }

// countedConn is an upgraded connection whose bytes a rule counts.
type countedConn struct {
	net.Conn

	counts *upgraded
}

// Read implements io.Reader. The reverse proxy compares the error, so it is not wrapped.
func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.counts.received.Add(int64(n))
	return n, err //nolint:wrapcheck // See above.
}

// Write implements io.Writer.
func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.counts.sent.Add(int64(n))
	return n, err //nolint:wrapcheck // See Read.
}

// CloseWrite closes the sending side of the connection.
func (c countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // See Read.
	}
	return errors.ErrUnsupported
}
