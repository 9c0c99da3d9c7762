package rule

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
)

// usualV4 and usualV6 are the lengths of the networks that count as one client: an IPv4 address, and the first 64 bits of an IPv6
// address. A provider usually assigns a /64 to one subscriber, who can use all its 2^64 addresses.
const (
	usualV4 = 32
	usualV6 = 64
)

// networkForm returns the form of an address with networks of its own.
func networkForm() PartForm {
	return PartForm{
		Text: "ip/24/56", Word: "ip", Pattern: "(ip|xff_ip|user_ip)(/[0-9]+){1,2}",
		Meaning: "the network of the peer's address: /24 of IPv4, /56 of IPv6. `ip/24` sets only the first, and `ip/56` only the second, " +
			"because it is above 32. `xff_ip` and `user_ip` take the same numbers",
	}
}

// isNetwork reports whether parts of the kind have networks of their own, whose lengths are then part of the key.
func (k partKind) isNetwork() bool { return k >= partIPNet && k <= partUserNet }

func validPrefixes(v4, v6 int) bool { return v4 >= 1 && v4 <= 32 && v6 >= 1 && v6 <= 128 }

// parseNetwork parses an address with networks of its own: ip/24, ip/56 or ip/24/56. The usual lengths give the part without lengths.
func parseNetwork(kind partKind, text string) (Part, error) {
	word := partTable[kind].word
	lengths := strings.Split(text[len(word)+1:], "/")
	bad := func(problem string) (Part, error) {
		return Part{}, &ParseError{
			Problem: "key part " + quote(text) + " " + problem, Offset: len(word),
			Fix: fmt.Sprintf("write it like %s/24 for IPv4, %s/56 for IPv6, or %s/24/56 for both", word, word, word),
		}
	}
	numbers := make([]int, 0, len(lengths))
	for _, digits := range lengths {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return bad("has a length of a network that is no number")
		}
		numbers = append(numbers, int(n))
	}
	v4, v6 := usualV4, usualV6
	switch {
	case len(numbers) > 2:
		return bad(fmt.Sprintf("has %d lengths", len(numbers)))
	case len(numbers) == 2:
		v4, v6 = numbers[0], numbers[1]
	case numbers[0] > 32:
		v6 = numbers[0]
	default:
		v4 = numbers[0]
	}
	switch {
	case v4 == 0 || v6 == 0:
		return Part{}, &ParseError{
			Problem: "key part " + quote(text) + " counts all addresses together", Fix: "write all", Offset: len(word),
		}
	case !validPrefixes(v4, v6):
		return bad("has a length that no network has: IPv4 has /1 to /32, and IPv6 /1 to /128")
	case v4 == usualV4 && v6 == usualV6:
		return Part{kind: kind}, nil
	}
	return Part{kind: partTable[kind].network, v4: uint8(v4), v6: uint8(v6)}, nil
}

// prefixes returns the lengths of the networks that an address part counts as one client.
func (p Part) prefixes() (v4, v6 int) {
	if p.v4 > 0 {
		return int(p.v4), int(p.v6)
	}
	return usualV4, usualV6
}

// appendPrefixes appends the lengths as parseNetwork reads them.
func (p Part) appendPrefixes(dst []byte) []byte {
	if p.v4 == 0 {
		return dst
	}
	if p.v4 != usualV4 || p.v6 <= 32 {
		dst = strconv.AppendUint(append(dst, '/'), uint64(p.v4), 10)
	}
	if p.v6 != usualV6 {
		dst = strconv.AppendUint(append(dst, '/'), uint64(p.v6), 10)
	}
	return dst
}

// appendNetwork appends the lengths and the network of an address part with networks of its own: 4 bytes of an IPv4 address, and 8
// or 16 bytes of an IPv6 address.
func (p Part) appendNetwork(dst []byte, req *headgate.Request) (key []byte, present bool) {
	dst = append(dst, p.v4, p.v6)
	counted := p.subscriber(p.address(req))
	switch {
	case !counted.IsValid():
		return append(dst, markMissing), false
	case counted.Addr().Is4():
		address := counted.Addr().As4()
		return append(append(dst, byte(len(address))), address[:]...), true
	}
	address := counted.Addr().As16()
	length := 8
	if p.v6 > 64 {
		length = len(address)
	}
	return append(append(dst, byte(length)), address[:length]...), true
}

// subscriber returns the network that keys of an address part count as one client. An invalid address gives the zero Prefix.
func (p Part) subscriber(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap()
	v4, bits := p.prefixes()
	if ip.Is4() {
		bits = v4
	}
	// Prefix removes the zone. Prefix cannot fail, because every valid address has that many bits.
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// readSubscriber parses an address, or the network that counts as one client.
func (p Part) readSubscriber(text string) (netip.Prefix, fault) {
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
	counted := p.subscriber(ip)
	if !network {
		return counted, fault{}
	}
	written, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fault{quote(text) + " is not a network", fix}
	case written.Bits()-written.Addr().BitLen() == counted.Bits()-counted.Addr().BitLen(): // Also the /128 of an IPv4 address within IPv6.
		return counted, fault{}
	case counted.Bits() == usualV4 && counted.Addr().Is4():
		return netip.Prefix{}, fault{
			quote(text) + " covers more than one client: IPv4 addresses count one by one",
			"write single addresses",
		}
	default:
		family := "IPv6"
		if counted.Addr().Is4() {
			family = "IPv4"
		}
		return netip.Prefix{}, fault{
			fmt.Sprintf("%s is not one client: %s addresses count by their /%d", quote(text), family, counted.Bits()),
			"write " + counted.String(),
		}
	}
}
