package listen

import (
	"net"
	"net/netip"
)

// sharedPrefix is the prefix length at which IPv6 addresses count together, because one
// client usually owns a /64.
const sharedPrefix = 64

// register counts a connection under its peer's address. It returns false if the address
// already has the maximum. Peers on unix sockets have no address and are not counted.
func (l *Listener) register(c *counted, peer net.Addr) bool {
	if l.perAddress <= 0 && l.admitted == nil {
		return true
	}
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return true
	}
	at := tcp.AddrPort().Addr().Unmap().WithZone("")
	if l.admitted != nil && !l.admitted(at) {
		l.tooMany.Add(1)
		return false
	}
	if l.perAddress <= 0 || l.exempt != nil && l.exempt(at) {
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
		return true // The connection is already closed, or already counted.
	case l.addresses[at] >= l.perAddress:
		l.tooMany.Add(1)
		return false
	}
	l.addresses[at]++
	c.address = at
	return true
}

// forget removes a closed connection from all counts.
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
