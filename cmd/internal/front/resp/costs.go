package resp

import (
	"crypto/tls"
	"net"
	"net/netip"

	"github.com/headgate/headgate/cmd/internal/heap"
)

// What a connection takes, in bytes: one that waits, and commands at work with their answers.
const (
	waitingSize = 16 << 10
	workSize    = 192 << 10
)

// Costs adds what each connection takes.
func (s *Server) Costs(to *heap.Costs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		to.Add(c, waitingSize+c.uses.Load(), 0, false)
	}
}

// Trusted implements heap.Closable.
func (c *conn) Trusted() bool {
	if c.server.trusts == nil {
		return false
	}
	var peer netip.Addr
	if at, ok := c.net.RemoteAddr().(*net.TCPAddr); ok {
		peer = at.AddrPort().Addr().Unmap()
	}
	return c.server.trusts(peer)
}

// Abort implements heap.Closable. It closes the connection below TLS, and discards unsent answers.
func (c *conn) Abort() {
	below := c.net
	if secured, ok := below.(*tls.Conn); ok { // Its Close would wait to send an alert.
		below = secured.NetConn()
	}
	if listened, ok := below.(interface{ Abort() }); ok {
		listened.Abort()
		return
	}
	_ = below.Close()
}
