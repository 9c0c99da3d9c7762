package proxy

import "errors"

const (
	// smallHead is how long the fields of a request may always be. Few requests have more.
	smallHead = 4 << 10
	// headShare is how many bytes of longer fields there may be for each connection: of
	// all connections together, and not of each. net/http makes up to 24 bytes of one.
	headShare = 1 << 10
)

var errHeads = errors.New("proxy: the fields of too many long requests are arriving at once")

// arrived counts what arrives of a request's fields by HTTP/1. Many connections that
// send long fields slowly would take max_header each, for as long as read_header_timeout:
// a connection that sends more than smallHead is closed while all together send too much.
func (c *clientConn) arrived(n int) error {
	own, all := c.head.Add(int64(n)), c.server.heads.Add(int64(n))
	if own <= smallHead || all <= c.server.mostHeads+int64(smallHead)*c.server.open.Load() {
		return nil
	}
	c.abort()
	return errHeads
}

// whole notes that the fields of a request have arrived, or that none will.
func (c *clientConn) whole() {
	c.heading.Store(false)
	c.server.heads.Add(-c.head.Swap(0))
}
