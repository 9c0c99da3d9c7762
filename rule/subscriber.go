package rule

import (
	"net/netip"
	"strings"
)

// subscriber returns the network that keys count as one client: an IPv4 address, or
// the first 64 bits of an IPv6 address. A provider usually assigns a /64 to one
// subscriber, who can use all its 2^64 addresses. An invalid address gives the zero
// Prefix.
func subscriber(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap()
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	// Prefix removes the zone. Prefix cannot fail, because every valid address has that many bits.
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// readSubscriber parses an address, or the network that counts as one client.
func readSubscriber(text string) (netip.Prefix, fault) {
	const fix = "write an address like 192.0.2.1 or 2001:db8::1, or a network like 2001:db8::/64"
	if text == "" {
		return netip.Prefix{}, fault{"is empty", fix}
	}
	address, _, network := strings.Cut(text, "/")
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return netip.Prefix{}, fault{quote(text) + " is not an address", fix}
	case ip.Zone() != "":
		return netip.Prefix{}, fault{quote(text) + " has a zone, which is not supported", "remove % and the text after it"}
	}
	counted := subscriber(ip)
	if !network {
		return counted, fault{}
	}
	written, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fault{quote(text) + " is not a network", fix}
	case ip.Unmap().Is4() && written.Bits() != ip.BitLen():
		return netip.Prefix{}, fault{
			quote(text) + " covers more than one client: IPv4 addresses count one by one",
			"write single addresses",
		}
	case ip.Unmap().Is6() && written.Bits() != counted.Bits():
		return netip.Prefix{}, fault{quote(text) + " is not one client: IPv6 addresses count by their /64", "write " + counted.String()}
	}
	return counted, fault{}
}
