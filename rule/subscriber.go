package rule

import (
	"net/netip"
	"strings"
)

// subscriber gives the network that keys count as one sender: an IPv4 address
// itself, and of an IPv6 address the first 64 bits, which is what one subscriber
// gets; whoever has it can use 2^64 addresses. It is the zero Prefix for an address
// that is not valid.
func subscriber(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap()
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	// Prefix drops the zone, and has no error: every address has that many bits, or none.
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// readSubscriber reads an address, or the network that counts as one sender.
func readSubscriber(text string) (netip.Prefix, fault) {
	const fix = "write an address like 192.0.2.1 or 2001:db8::1, or a network like 2001:db8::/64"
	if text == "" {
		return netip.Prefix{}, fault{"is empty", fix}
	}
	address, _, network := strings.Cut(text, "/")
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return netip.Prefix{}, fault{quote(text) + " is no address", fix}
	case ip.Zone() != "":
		return netip.Prefix{}, fault{quote(text) + " has a zone, which does not count", "leave out % and what follows it"}
	}
	counted := subscriber(ip)
	if !network {
		return counted, fault{}
	}
	written, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fault{quote(text) + " is no network", fix}
	case ip.Unmap().Is4() && written.Bits() != ip.BitLen():
		return netip.Prefix{}, fault{quote(text) + " is more than one sender: IPv4 addresses count one by one", "write single addresses"}
	case ip.Unmap().Is6() && written.Bits() != counted.Bits():
		return netip.Prefix{}, fault{quote(text) + " is not one sender: IPv6 addresses count by their /64", "write " + counted.String()}
	}
	return counted, fault{}
}
