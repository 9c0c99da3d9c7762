package proxy

import "errors"

const (
	// smallHead is the length, in bytes, that a request's header may always have. Few
	// headers are longer.
	smallHead = 4 << 10
	// headShare is how many bytes of longer headers are allowed per connection, as an
	// average over all connections. net/http uses up to 24 bytes of memory for each.
	headShare = 1 << 10
)

var errHeads = errors.New("proxy: too many long request headers are arriving at once")

// arrived counts the bytes of HTTP/1 headers that are arriving. Without a common bound,
// many connections that send long headers slowly would each use max_header bytes, for up
// to read_header_timeout. When the total is over the bound, a connection whose header is
// longer than smallHead is closed.
func (c *clientConn) arrived(n int) error {
	own, all := c.head.Add(int64(n)), c.server.heads.Add(int64(n))
	if own <= smallHead || all <= c.server.mostHeads+int64(smallHead)*c.server.open.Load() {
		return nil
	}
	c.Abort()
	return errHeads
}

// headDone notes that a request's header has arrived, or will not arrive.
func (c *clientConn) headDone() {
	c.heading.Store(false)
	c.server.heads.Add(-c.head.Swap(0))
}
