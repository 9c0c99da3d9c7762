package rule

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/headgate/headgate"
)

// A key is the rule's name and then each part. A name is its length (a uvarint) and
// its bytes. A part is its partKind, its name or its two prefix lengths if it has them, and one value:
//
//	0x00 to 0x80   the length of the value, which follows
//	0xFE           the digest of a longer value follows: digestLength bytes
//	0xFF           the request has no such value, and no bytes follow
//
// Every element contains its length, so no value can imitate several elements. The
// marks 0xFE and 0xFF are not valid lengths, so no client can send them. Shared stores
// keep such keys: a change of the format invalidates their data.
const (
	maxValueLength = 0x80
	markDigest     = 0xFE
	markMissing    = 0xFF
	// digestLength is the number of bytes of the SHA-256 in a key. An attacker needs 2^128
	// tries to find another client's value.
	digestLength = 16
)

// AppendKey appends the key under which the rule counts the request. AppendKey allocates
// nothing if dst has enough capacity.
//
// A missing or empty text and an invalid IP are missing values. An empty text counts
// as missing because a client could otherwise use it as a second allowance. Path,
// method and host are never missing, and what their variables stand for is not missing in a request that matches
// the rule. Requests that lack the same parts and have equal other parts share one key, and shared is then true.
//
// The key of a rule with a Quota is that of the customer: see AppendCustomerKey.
func (r *Rule) AppendKey(dst []byte, req *headgate.Request) (key []byte, shared bool) {
	if r.Quota != "" {
		key, _, shared = r.AppendCustomerKey(dst, req)
		return key, shared
	}
	dst = appendName(dst, r.Name)
	for _, p := range r.Key {
		dst = append(dst, byte(p.kind))
		if p.name != "" { // ParsePart refuses an empty name.
			dst = appendName(dst, p.name)
		}
		present := true
		switch {
		case p.kind == partNone || p.kind == partAll:
		case p.v4 > 0:
			dst, present = p.appendNetwork(dst, req)
		case p.isAddress():
			dst, present = appendIP(dst, p.address(req))
		default:
			dst, present = appendValue(dst, p, req)
		}
		shared = shared || !present
	}
	return dst, shared
}

// Owns reports whether a key of AppendKey begins as those of the rule.
func (r *Rule) Owns(key string) bool {
	n, size := binary.Uvarint([]byte(key[:min(len(key), binary.MaxVarintLen64)]))
	return size > 0 && n == uint64(len(r.Name)) && strings.HasPrefix(key[size:], r.Name)
}

func appendName(dst []byte, name string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	return append(dst, name...)
}

// appendValue appends the value of a text part.
func appendValue(dst []byte, p Part, req *headgate.Request) (key []byte, present bool) {
	value, present := p.lookup(req)
	return appendText(dst, value, present), present
}

func appendText(dst []byte, value string, present bool) []byte {
	switch {
	case !present:
		return append(dst, markMissing)
	case len(value) <= maxValueLength:
		dst = append(dst, byte(len(value)))
		return append(dst, value...)
	default:
		sum := digest(value)
		dst = append(dst, markDigest)
		return append(dst, sum[:]...)
	}
}

// digest hashes a text piece by piece. Hashing the text at once would copy it to the
// heap, and clients choose its length.
func digest(text string) (short [digestLength]byte) {
	h := sha256.New()
	var piece [256]byte
	for len(text) > 0 {
		n := copy(piece[:], text)
		h.Write(piece[:n])
		text = text[n:]
	}
	var sum [sha256.Size]byte
	copy(short[:], h.Sum(sum[:0]))
	return short
}

// lookup returns the value of a text part. A method, host or path is always present.
func (p Part) lookup(req *headgate.Request) (value string, present bool) {
	switch p.kind {
	case partPath:
		return req.Path, true
	case partMethod:
		return req.Method, true
	case partHost:
		return req.Host, true
	case partHeader:
		return lookup(req.Header, p.name)
	case partCookie:
		return lookup(req.Cookie, p.name)
	case partRegion:
		return req.Region, req.Region != ""
	case partSubject:
		return req.Subject, req.Subject != ""
	case partClaim:
		return lookup(req.Claims, p.name)
	case partDescriptor:
		return descriptor(req, p.name)
	case partQuery:
		return lookup(req.Query, p.name)
	case partModel, partJSON:
		return bodyField(req, p.bodyPath())
	case partPathName, partHostName:
		return p.variable(req)
	default:
		return "", false
	}
}

// variable returns what the name of a bound part stands for. A request that matches the rule has it.
func (p Part) variable(req *headgate.Request) (value string, present bool) {
	switch {
	case p.from == nil:
		return "", false
	case p.kind == partHostName:
		return p.from.find(req.Host)
	default:
		return p.from.find(req.Path)
	}
}

// isAddress reports whether the part is an address. All other parts except all are
// texts.
func (p Part) isAddress() bool {
	return p.kind == partIP || p.kind == partXFFIP || p.kind == partUserIP || p.v4 > 0
}

// address returns the address of an address part. address returns the peer if the Identity
// has not resolved the client.
func (p Part) address(req *headgate.Request) netip.Addr {
	switch {
	case (p.kind == partXFFIP || p.kind == partXFFNet) && req.XFFIP.IsValid():
		return req.XFFIP
	case (p.kind == partUserIP || p.kind == partUserNet) && req.UserIP.IsValid():
		return req.UserIP
	default:
		return req.IP
	}
}

// lookup returns the value that a client sent under a name. An empty value counts as
// missing.
func lookup(values headgate.Values, name string) (value string, present bool) {
	if values == nil {
		return "", false
	}
	value, present = values.Lookup(name)
	return value, present && value != ""
}

// descriptor returns the value of a descriptor entry. An empty value counts as missing.
// The function lookup would allocate for its interface argument.
func descriptor(req *headgate.Request, name string) (value string, present bool) {
	value, _ = req.Descriptors.Lookup(name)
	return value, value != ""
}

// appendIP appends all bytes of an IPv4 address, and the first 64 bits of an IPv6
// address. The result matches the network of subscriber but costs less.
func appendIP(dst []byte, ip netip.Addr) (key []byte, present bool) {
	ip = ip.Unmap()
	switch {
	case ip.Is4():
		address := ip.As4()
		dst = append(dst, byte(len(address)))
		return append(dst, address[:]...), true
	case ip.Is6():
		address := ip.As16()
		dst = append(dst, 8)
		return append(dst, address[:8]...), true
	default:
		return append(dst, markMissing), false
	}
}
