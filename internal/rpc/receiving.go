package rpc

import (
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// counting are credentials whose connections count the bytes of unfinished requests.
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
	return &counted{Conn: secured, below: below, requests: newRequests(most)}, info, nil
}

// entriesPerStream allows a client to begin new calls while it still sends for ended ones.
const entriesPerStream = 4

// counted is a connection above TLS. It follows the requests that the client sends.
type counted struct {
	net.Conn

	below    *conn
	mu       sync.Mutex // One goroutine reads, and another one writes.
	requests *requests
}

// Read implements net.Conn.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests.received(b[:n])
	c.below.hold(c.requests.held())
	if c.requests.tooMany {
		c.below.abort()
	}
	return n, err
}

// Write implements net.Conn.
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests.sent(b[:n])
	c.below.hold(c.requests.held())
	return n, err
}

// evict closes the connections with the most bytes of unfinished requests, until all together
// are within MaxReceiving.
func (s *Server) evict() {
	for s.receiving.Load() > s.config.MaxReceiving {
		var largest *conn
		var most int64
		for _, c := range s.open() {
			if held := c.held.Load(); held > most {
				largest, most = c, held
			}
		}
		if largest == nil {
			return
		}
		s.evicted.Add(1)
		largest.abort()
	}
}
