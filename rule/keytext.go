package rule

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/headgate/headgate"
)

// shownLength is how much of a value that is too long for a key a text shows.
const shownLength = 96

// KeyText gives the key of a request for people: the rule's name, and each part
// with its value, quoted and escaped. Texts of checked rules are equal exactly
// when the keys are.
//
//	product header:X-Client-Id="a" ip=2001:db8::/64
func (r *Rule) KeyText(req *headgate.Request) string {
	text := []byte(r.Name)
	for _, p := range r.Key {
		text = append(append(text, ' '), p.String()...)
		switch p.kind {
		case partNone, partAll:
		case partIP:
			text = append(append(text, '='), ipText(req.IP)...)
		default:
			text = append(append(text, '='), valueText(p.lookup(req))...)
		}
	}
	return string(text)
}

// missingText has no quotation marks, which every value has.
const missingText = "(missing)"

func valueText(value string, present bool) string {
	switch {
	case !present:
		return missingText
	case len(value) <= maxValueLength:
		return strconv.Quote(value)
	default:
		return fmt.Sprintf("%q...(%d bytes, sha256 %x)", value[:shownLength], len(value), digest(value))
	}
}

func ipText(ip netip.Addr) string {
	ip = ip.Unmap()
	switch {
	case ip.Is4():
		return ip.String()
	case ip.Is6():
		// An IPv6 address always has such a prefix, and the prefix has no zone.
		prefix, _ := ip.Prefix(64)
		return prefix.String()
	default:
		return missingText
	}
}
