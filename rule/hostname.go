package rule

import (
	"net/netip"
	"strings"
)

// ParseHost parses a Host field or an :authority. ParseHost returns the name that rules match
// and count by, and the port without leading zeros ("" without a port).
//
// The name is in lower case, without a dot at its end. An IPv6 address is in its
// shortest form, without brackets. The empty text is the empty name.
//
// ParseHost reports false for a text that servers interpret differently: an invalid
// character, an empty label, more than 253 bytes, a port above 65535 or not a number,
// or a zone. ParseHost also reports false for names that are not ASCII: callers must pass the
// punycode form.
//
// ParseHost allocates nothing for a name in lower case.
func ParseHost(text string) (name, port string, ok bool) {
	if text == "" {
		return "", "", true
	}
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		return parseBracketed(inner)
	}
	name, port, colon := strings.Cut(text, ":")
	if colon {
		if port, ok = trimPort(port); !ok {
			return "", "", false
		}
	}
	lower, ok := lowerName(strings.TrimSuffix(name, "."))
	return lower, port, ok
}

// JoinHost returns the canonical Host field for the results of ParseHost.
func JoinHost(name, port string) string {
	if strings.IndexByte(name, ':') >= 0 {
		name = "[" + name + "]"
	}
	if port == "" {
		return name
	}
	return name + ":" + port
}

// parseBracketed parses the text after the bracket that opens an IPv6 address.
func parseBracketed(inner string) (name, port string, ok bool) {
	address, rest, closed := strings.Cut(inner, "]")
	if !closed || len(address) > maxSender {
		return "", "", false
	}
	ip, ok := parseIPv6Host(address)
	if !ok || rest != "" && rest[0] != ':' {
		return "", "", false
	}
	if port, ok = trimPort(strings.TrimPrefix(rest, ":")); !ok {
		return "", "", false
	}
	return ip.String(), port, true
}

// parseIPv6Host parses an IPv6 address without brackets.
func parseIPv6Host(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	return ip, err == nil && ip.Is6() && ip.Zone() == ""
}

// trimPort removes leading zeros. An empty port means no port (RFC 3986, section 3.2.3).
func trimPort(port string) (trimmed string, ok bool) {
	if port == "" {
		return "", true
	}
	trimmed = strings.TrimLeft(port, "0")
	const most = "65535"
	if len(trimmed) > len(most) || len(trimmed) == len(most) && trimmed > most {
		return "", false
	}
	for i := range len(trimmed) {
		if !isDigit(trimmed[i]) {
			return "", false
		}
	}
	if trimmed == "" {
		trimmed = "0"
	}
	return trimmed, true
}

// lowerName checks the characters and the labels of a name and converts it to lower case.
func lowerName(name string) (lower string, ok bool) {
	upper, before := false, byte('.')
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', isDigit(c), c == '-', c == '_':
		case 'A' <= c && c <= 'Z':
			upper = true
		case c == '.' && before != '.':
		default:
			return "", false
		}
		before = c
	}
	if before == '.' || len(name) > maxHost { // The name is empty, or its last label is empty.
		return "", false
	}
	if upper {
		name = strings.ToLower(name)
	}
	return name, true
}
