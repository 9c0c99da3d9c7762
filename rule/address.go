package rule

import (
	"net/netip"
	"strings"
)

// maxSender is the length of the longest text that parseSender accepts, without blanks.
const maxSender = len("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535")

// parseSender parses an address in the forms that proxies write, with or without
// blanks around it: "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]" and
// "[2001:db8::1]:80". parseSender refuses zones, because a zone is valid on one machine only.
// parseSender converts IPv4 in IPv6 to IPv4.
//
// parseSender accepts the same addresses as netip.ParseAddr. netip.ParseAddr
// allocates an error for each invalid text, and attackers choose the texts here.
func parseSender(text string) (netip.Addr, bool) {
	text = strings.Trim(text, " \t")
	if len(text) > maxSender {
		return netip.Addr{}, false
	}
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		inner, port, closed := strings.Cut(inner, "]")
		if !closed || port != "" && !isPort(port) {
			return netip.Addr{}, false
		}
		return parseIPv6(inner)
	}
	switch colon := strings.IndexByte(text, ':'); {
	case colon < 0:
		return parseIPv4(text)
	case colon < strings.LastIndexByte(text, ':'):
		return parseIPv6(text)
	case isPort(text[colon:]):
		return parseIPv4(text[:colon])
	default:
		return netip.Addr{}, false
	}
}

// isPort reports whether text is a colon and a port.
func isPort(text string) bool {
	digits, ok := strings.CutPrefix(text, ":")
	if !ok || digits == "" || len(digits) > len("65535") {
		return false
	}
	port := 0
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			return false
		}
		port = port*10 + int(digits[i]-'0')
	}
	return port <= 65535
}

func parseIPv4(text string) (netip.Addr, bool) {
	var ip [4]byte
	for i := range ip {
		number, rest, more := strings.Cut(text, ".")
		octet, ok := parseOctet(number)
		if last := i == len(ip)-1; !ok || more == last {
			return netip.Addr{}, false
		}
		ip[i], text = octet, rest
	}
	return netip.AddrFrom4(ip), true
}

// parseOctet parses 0 to 255 without leading zeros, because some systems read leading
// zeros as octal.
func parseOctet(text string) (octet byte, ok bool) {
	if text == "" || len(text) > 3 || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	value := 0
	for i := range len(text) {
		if !isDigit(text[i]) {
			return 0, false
		}
		value = value*10 + int(text[i]-'0')
	}
	return byte(value), value <= 255
}

func parseIPv6(text string) (netip.Addr, bool) {
	head, tail, short := strings.Cut(text, "::")
	var ip, end [16]byte
	n, ok := parseGroups(&ip, head, !short)
	if !short {
		ok = ok && n == len(ip)
	} else {
		// The two colons replace at least one group.
		m, good := parseGroups(&end, tail, true)
		ok = ok && good && n+m <= len(ip)-2
		copy(ip[len(ip)-m:], end[:m])
	}
	if !ok {
		return netip.Addr{}, false
	}
	return netip.AddrFrom16(ip).Unmap(), true
}

// parseGroups parses groups of hexadecimal digits into the first n bytes of ip. The
// last group may be an IPv4 address if ends is set.
func parseGroups(ip *[16]byte, text string, ends bool) (n int, ok bool) {
	for more := text != ""; more; {
		var group string
		group, text, more = strings.Cut(text, ":")
		if ends && !more && strings.IndexByte(group, '.') >= 0 {
			ip4, ok := parseIPv4(group)
			if !ok || n+4 > len(ip) {
				return 0, false
			}
			octets := ip4.As4()
			return n + copy(ip[n:], octets[:]), true
		}
		value, ok := parseGroup(group)
		if !ok || n == len(ip) {
			return 0, false
		}
		ip[n], ip[n+1] = byte(value>>8), byte(value)
		n += 2
	}
	return n, true
}

// parseGroup parses one to four hexadecimal digits.
func parseGroup(text string) (value uint16, ok bool) {
	if text == "" || len(text) > 4 {
		return 0, false
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case isDigit(c):
			c -= '0'
		case isHex(c):
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		value = value<<4 | uint16(c)
	}
	return value, true
}
