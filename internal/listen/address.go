package listen

import (
	"net"
	"net/netip"
)

// sharedPrefix is the part of an IPv6 address that names a network: one client has all
// addresses of a /64.
const sharedPrefix = 64

// register counts a connection under the address that it comes from. It gives false
// when that address has as many as it may. Peers on unix sockets have no address.
func (l *Listener) register(c *counted, peer net.Addr) bool {
	if l.perAddress <= 0 {
		return true
	}
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return true
	}
	at := tcp.AddrPort().Addr().Unmap().WithZone("")
	if l.exempt != nil && l.exempt(at) {
		return true
	}
	if at.Is6() {
		prefix, _ := at.Prefix(sharedPrefix)
		at = prefix.Addr()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c.closed || c.address.IsValid():
		return true // It has ended meanwhile, or is counted.
	case l.addresses[at] >= l.perAddress:
		l.tooMany.Add(1)
		return false
	}
	l.addresses[at]++
	c.address = at
	return true
}

// forget takes a closed connection out of what is counted.
func (l *Listener) forget(c *counted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.closed = true
	delete(l.conns, c)
	at := c.address
	if !at.IsValid() {
		return
	}
	c.address = netip.Addr{}
	if l.addresses[at]--; l.addresses[at] == 0 {
		delete(l.addresses, at)
	}
}
