package rpc

import (
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// counting are credentials whose connections count the memory of calls in flight.
type counting struct {
	credentials.TransportCredentials
}

// ServerHandshake implements credentials.TransportCredentials.
func (c counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	below, ok := raw.(*conn)
	if !ok {
		return secured, info, nil
	}
	most := entriesPerStream * below.server.config.MaxStreams
	return &counted{Conn: secured, below: below, calls: newCalls(most)}, accounted{info, (*Account)(below)}, nil
}

// accounted is the AuthInfo of a connection with its account.
type accounted struct {
	credentials.AuthInfo

	account *Account
}

// Unwrap gives the AuthInfo of the credentials below, such as that of TLS.
func (a accounted) Unwrap() credentials.AuthInfo { return a.AuthInfo }

// entriesPerStream allows a client to begin calls that the server has not refused yet.
const entriesPerStream = 4

// counted is a connection above TLS. It follows the calls of the client.
type counted struct {
	net.Conn

	below *conn
	mu    sync.Mutex // One goroutine reads, and another one writes.
	calls *calls
}

// Read implements net.Conn.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.received(b[:n])
	c.below.hold(c.calls.held())
	if c.calls.tooMany {
		c.below.Abort()
	}
	return n, err
}

// Write implements net.Conn.
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.sent(b[:n])
	c.below.hold(c.calls.held())
	return n, err
}

// evict closes the connections whose calls take the most memory, until all together are within
// half of MaxCallMemory.
func (s *Server) evict() {
	s.evicting.Lock() // Two at a time would close two connections where one is enough.
	defer s.evicting.Unlock()
	for s.waiting.Load() > s.config.MaxCallMemory/2 {
		var largest *conn
		var most int64
		for _, c := range s.open() {
			if held := c.held.Load() + c.unread.Load(); held > most {
				largest, most = c, held
			}
		}
		if largest == nil {
			return
		}
		s.evicted.Add(1)
		largest.Abort()
	}
}
