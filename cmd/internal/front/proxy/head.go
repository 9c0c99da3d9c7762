package proxy

import (
	"bytes"
	"errors"
	"time"
)

const (
	// smallHead is the length, in bytes, that a request's header may always have. Few
	// headers are longer.
	smallHead = 4 << 10
	// headShare is how many bytes of longer headers are allowed per connection, as an
	// average over all connections. net/http uses up to 24 bytes of memory for each.
	headShare = 1 << 10
)

// mostUnread is how long a connection whose request still arrives waits for memory, in total for one request. A collection on a busy
// machine takes seconds.
const mostUnread = 10 * time.Second

const endOfHead = "\r\n\r\n"

var errHeads = errors.New("proxy: too many long request headers are arriving at once")

// arrived counts the bytes of HTTP/1 headers that are arriving. Without a common bound,
// many connections that send long headers slowly would each use max_header bytes, for up
// to read_header_timeout. When the total is over the bound, a connection whose header is
// longer than smallHead is closed.
func (c *clientConn) arrived(b []byte) error {
	own, all := c.head.Add(int64(len(b))), c.server.heads.Add(int64(len(b)))
	if own > smallHead && all > c.server.mostHeads+int64(smallHead)*c.server.open.Load() {
		c.Abort()
		return errHeads
	}
	if c.incomplete(b, own) {
		c.awaitMemory()
	}
	return nil
}

// incomplete reports whether more of a request has to arrive after b. own is the length so far. With TLS, a handshake and a small header
// count as complete. The preface of HTTP/2 ends like a header.
func (c *clientConn) incomplete(b []byte, own int64) bool {
	if c.server.tls != nil {
		return own > smallHead
	}
	return c.multiplexed.Load() || !bytes.HasSuffix(b, []byte(endOfHead)) && !bytes.Contains(b, []byte(endOfHead))
}

// headDone notes that a request's header has arrived, or will not arrive.
func (c *clientConn) headDone() {
	c.heading.Store(false)
	c.waited.Store(0)
	c.server.heads.Add(-c.head.Swap(0))
}

// multiplex notes that the client uses HTTP/2.
func (c *clientConn) multiplex() {
	if !c.multiplexed.Swap(true) {
		c.unasked.Store(true)
		c.server.unasked.Add(1)
	}
}

// asked notes that the first request of a client of HTTP/2 has begun, or that the connection ends.
func (c *clientConn) asked() {
	if c.unasked.Load() && c.unasked.CompareAndSwap(true, false) {
		c.server.unasked.Add(-1)
	}
}

// awaitMemory keeps the reader of a request that still arrives from filling the heap faster than connections are closed.
func (c *clientConn) awaitMemory() {
	if c.in == nil {
		return
	}
	c.in.Arrived(arrivingHTTP1*c.server.heads.Load() + (multiplexedCost+arrivingHTTP2*readAhead)*c.server.unasked.Load())
	before := mostUnread - time.Duration(c.waited.Load())
	if left := c.in.AwaitUnread(before, c.readsOn); left < before {
		c.waited.Add(int64(before - left))
	}
}

// readsOn reports whether the connection does not wait for memory: a connection that ends frees some, and a trusted peer has the requests
// of many users.
func (c *clientConn) readsOn() bool { return c.aborted.Load() || c.Trusted() }
