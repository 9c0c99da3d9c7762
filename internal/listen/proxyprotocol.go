package listen

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pires/go-proxyproto"
)

// balancers are the peers that begin a connection with the address of their client.
type balancers struct {
	networks []netip.Prefix
	unix     bool
}

// include tells whether a peer is a balancer.
func (b *balancers) include(peer net.Addr) bool {
	switch peer := peer.(type) {
	case *net.TCPAddr:
		at := peer.AddrPort().Addr().Unmap().WithZone("")
		for _, network := range b.networks {
			if network.Contains(at) {
				return true
			}
		}
		return false
	case *net.UnixAddr:
		return b.unix
	default:
		return false
	}
}

// proxied is a balancer's connection. Its header is read by the first Read, Write
// or RemoteAddr, which are the connection's own goroutine's. Without a good header
// in time, reads and writes fail. With the command LOCAL or the family UNKNOWN the
// address stays the balancer's.
type proxied struct {
	*proxyproto.Conn

	inner *counted
	named *naming
}

// naming counts a connection once, under the address that its header names.
type naming struct {
	once    sync.Once
	refused atomic.Bool
}

func newProxied(c *counted, timeout time.Duration) proxied {
	return proxied{proxyproto.NewConn(c,
		proxyproto.WithPolicy(proxyproto.REQUIRE), proxyproto.SetReadHeaderTimeout(timeout)), c, new(naming)}
}

// RemoteAddr implements net.Conn. A connection of an address that has too many is
// closed: what follows fails.
func (p proxied) RemoteAddr() net.Addr {
	at := p.Conn.RemoteAddr()
	p.named.once.Do(func() {
		if p.ProxyHeader() != nil && !p.inner.from.register(p.inner, at) {
			p.named.refused.Store(true)
			_ = p.inner.Close()
		}
	})
	return at
}

// Read implements net.Conn.
func (p proxied) Read(b []byte) (int, error) {
	p.RemoteAddr()
	if p.named.refused.Load() {
		return 0, net.ErrClosed // The header's packet may have held a request too.
	}
	return p.Conn.Read(b)
}

// CloseWrite tells the balancer that nothing more comes.
func (p proxied) CloseWrite() error { return closeWrite(p.Raw()) }

// Idle, Busy and Abort are those of the balancer's connection.
func (p proxied) Idle() { p.inner.Idle() }

// Busy says that a request has begun.
func (p proxied) Busy() { p.inner.Busy() }

// Abort closes the connection and drops what is unread.
func (p proxied) Abort() { p.inner.Abort() }
