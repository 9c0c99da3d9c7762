package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/internal/heap"
)

// What a connection of a framedListener takes, in bytes: between requests, for each byte of a header (net/http takes up to 24), and for
// each byte of a body.
const (
	framedCost = 16 << 10
	headCost   = 24
	bodyCost   = 4
)

// framedConns are the open connections of a framedListener.
type framedConns struct {
	mu  sync.Mutex
	all map[*framedConn]struct{} // guarded by mu
}

func (f *framedConns) add(c *framedConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[*framedConn]struct{}{}
	}
	f.all[c] = struct{}{}
}

func (f *framedConns) remove(c *framedConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, c)
}

// costs adds what each connection takes. l is nil when the listener is off.
func (l *framedListener) costs(to *heap.Costs) {
	if l == nil {
		return
	}
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	for c := range l.conns.all {
		to.Add(c, framedCost+headCost*c.head.Load()+bodyCost*c.body.Load(), 0, false)
	}
}

// count counts bytes of a request. The header of a request that is in flight has arrived.
func (c *framedConn) count(n int) {
	if c.active.Load() {
		c.body.Add(int64(n))
	} else {
		c.head.Add(int64(n))
	}
}

// changed follows the states of the connection in net/http.
func (c *framedConn) changed(state http.ConnState) {
	switch state {
	case http.StateActive:
		c.active.Store(true)
	case http.StateIdle:
		c.active.Store(false)
		c.head.Store(0)
		c.body.Store(0)
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}

// Trusted implements heap.Closable.
func (c *framedConn) Trusted() bool {
	if c.from.trusts == nil {
		return false
	}
	var peer netip.Addr
	if at, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		peer = at.AddrPort().Addr().Unmap()
	}
	return c.from.trusts(peer)
}

// Abort implements heap.Closable. It closes the connection below TLS, and discards unsent data.
func (c *framedConn) Abort() {
	if able, ok := c.listened.(interface{ Abort() }); ok {
		able.Abort()
	}
}

// Close implements net.Conn.
func (c *framedConn) Close() error {
	c.from.conns.remove(c)
	return c.Conn.Close() //nolint:wrapcheck // because net/http compares the error.
}

// traffic of a framedConn.
type framedTraffic struct {
	head, body atomic.Int64 // bytes of the request that arrives or is in flight
	active     atomic.Bool  // a request is in flight
}
