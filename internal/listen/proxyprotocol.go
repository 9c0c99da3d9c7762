package listen

import (
	"net"
	"net/netip"
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
type proxied struct{ *proxyproto.Conn }

func newProxied(c net.Conn, timeout time.Duration) proxied {
	return proxied{proxyproto.NewConn(c,
		proxyproto.WithPolicy(proxyproto.REQUIRE), proxyproto.SetReadHeaderTimeout(timeout))}
}

// CloseWrite tells the balancer that nothing more comes.
func (p proxied) CloseWrite() error { return closeWrite(p.Raw()) }
