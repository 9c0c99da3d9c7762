package rule

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/headgate/headgate"
)

// shownLength is the number of bytes that the text shows of a value above the length
// limit of keys.
const shownLength = 96

// KeyText returns the key of a request as text for people: the rule's name, and each
// part with its value, quoted and escaped. Texts of checked rules are equal exactly
// when the keys are equal.
//
//	product header:X-Client-Id="a" ip=2001:db8::/64
func (r *Rule) KeyText(req *headgate.Request) string {
	if r.Quota != "" {
		key, _, _ := r.AppendCustomerKey(nil, req)
		return string(PlainKeyNames().AppendKey([]byte(r.Quota+" "), string(key)))
	}
	text := []byte(r.Name)
	for _, p := range r.Key {
		text = append(append(text, ' '), p.String()...)
		switch {
		case p.kind == partNone || p.kind == partAll:
		case p.isAddress():
			text = append(append(text, '='), p.ipText(p.address(req))...)
		default:
			text = append(append(text, '='), p.valueText(req)...)
		}
	}
	return string(text)
}

// Values have quotation marks, so no value equals these words. A region is unknown
// rather than missing, because clients do not send it.
const (
	missingText = "(missing)"
	unknownText = "(unknown)"
)

func (p Part) valueText(req *headgate.Request) string {
	value, present := p.lookup(req)
	switch {
	case !present && p.kind == partRegion:
		return unknownText
	case !present:
		return missingText
	case len(value) <= maxValueLength:
		return strconv.Quote(value)
	default:
		return fmt.Sprintf("%q...(%d bytes, sha256 %x)", value[:shownLength], len(value), digest(value))
	}
}

func (p Part) ipText(ip netip.Addr) string {
	counted := p.subscriber(ip)
	if !counted.IsValid() {
		return missingText
	}
	return string(appendSubscriber(nil, counted))
}
