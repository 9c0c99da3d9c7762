package listen

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pires/go-proxyproto"
)

// balancers are the peers that begin a connection with a PROXY header.
type balancers struct {
	networks []netip.Prefix
	unix     bool
}

// include reports whether a peer is a balancer.
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

// proxied is a balancer's connection. The first Read, Write or RemoteAddr reads its header;
// the connection's own goroutine makes these calls. Without a valid header in time, reads
// and writes fail. With the command LOCAL or the family UNKNOWN the address stays the
// balancer's.
type proxied struct {
	*proxyproto.Conn

	inner *counted
	named *naming
}

// naming counts a connection once, under the address in its header.
type naming struct {
	once    sync.Once
	refused atomic.Bool
}

func newProxied(c *counted, timeout time.Duration) proxied {
	return proxied{proxyproto.NewConn(c,
		proxyproto.WithPolicy(proxyproto.REQUIRE), proxyproto.SetReadHeaderTimeout(timeout)), c, new(naming)}
}

// RemoteAddr implements net.Conn. If the address has too many connections, it closes this
// connection, and later calls fail.
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
		return 0, net.ErrClosed // The header's packet may also contain a request.
	}
	return p.Conn.Read(b)
}

// CloseWrite closes the sending side.
func (p proxied) CloseWrite() error { return closeWrite(p.Raw()) }

// SyscallConn implements syscall.Conn. Bytes of the client may be in a buffer, so that nothing
// may be read from the descriptor.
func (p proxied) SyscallConn() (syscall.RawConn, error) { return p.inner.SyscallConn() }

// Idle calls Idle of the balancer's connection.
func (p proxied) Idle() { p.inner.Idle() }

// Busy calls Busy of the balancer's connection.
func (p proxied) Busy() { p.inner.Busy() }

// Await is counted.Await.
func (p proxied) Await(since time.Time) { p.inner.Await(since) }

// Abort calls Abort of the balancer's connection.
func (p proxied) Abort() { p.inner.Abort() }
