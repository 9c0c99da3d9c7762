package rule

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"

	"github.com/headgate/headgate"
)

// A key is the rule's name and then each part. A name is its length (a uvarint)
// and its bytes. A part is its partKind, the name if it has one, and one value:
//
//	0x00 to 0x80   that many bytes follow: the value itself
//	0xFE           digestLength bytes follow: the digest of a longer value
//	0xFF           nothing follows: the request has no such value
//
// Every element tells its own end, so that no value can imitate another
// combination, and the two marks are no lengths, so that nobody can send them.
// Shared stores hold such keys: a change to the form is a change to their data.
const (
	maxValueLength = 0x80
	markDigest     = 0xFE
	markMissing    = 0xFF
	// digestLength is how much of the SHA-256 counts: to meet another client's
	// value takes 2^128 tries.
	digestLength = 16
)

// AppendKey appends the key under which the request counts for the rule, and
// allocates nothing when dst has room.
//
// A text other than path, method and host that is absent or empty, and an IP that
// is not valid, are missing: an empty name says as little as none, and as a value
// of its own it would be a second allowance for whoever has no name. All requests
// that lack the same parts, and agree in the others, count under one key; shared
// reports that.
func (r *Rule) AppendKey(dst []byte, req *headgate.Request) (key []byte, shared bool) {
	dst = appendName(dst, r.Name)
	for _, p := range r.Key {
		dst = append(dst, byte(p.kind))
		if p.kind.named() {
			dst = appendName(dst, p.name)
		}
		present := true
		switch {
		case p.kind == partNone || p.kind == partAll:
		case p.isAddress():
			dst, present = appendIP(dst, p.address(req))
		default:
			dst, present = appendValue(dst, p, req)
		}
		shared = shared || !present
	}
	return dst, shared
}

func appendName(dst []byte, name string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	return append(dst, name...)
}

// appendValue appends the value of a part that is a text.
func appendValue(dst []byte, p Part, req *headgate.Request) (key []byte, present bool) {
	value, present := p.lookup(req)
	switch {
	case !present:
		return append(dst, markMissing), false
	case len(value) <= maxValueLength:
		dst = append(dst, byte(len(value)))
		return append(dst, value...), true
	default:
		sum := digest(value)
		dst = append(dst, markDigest)
		return append(dst, sum[:]...), true
	}
}

// digest hashes a text of any length piece by piece: as a whole it would have to
// be copied to the heap, and its length is the client's choice.
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

// lookup gives the text of a part that is one. A method, host or path is always there.
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
	default:
		return "", false
	}
}

// isAddress reports whether the part is an address; what is neither that nor all is
// a text.
func (p Part) isAddress() bool {
	return p.kind == partIP || p.kind == partXFFIP || p.kind == partUserIP
}

// address gives the address of a part that is one. Where nobody has looked for the
// sender behind the peer, the peer is who is known.
func (p Part) address(req *headgate.Request) netip.Addr {
	switch {
	case p.kind == partXFFIP && req.XFFIP.IsValid():
		return req.XFFIP
	case p.kind == partUserIP && req.UserIP.IsValid():
		return req.UserIP
	default:
		return req.IP
	}
}

// lookup gives what a client sent under a name; what is empty is not there.
func lookup(values headgate.Values, name string) (value string, present bool) {
	if values == nil {
		return "", false
	}
	value, present = values.Lookup(name)
	return value, present && value != ""
}

// descriptor gives the value of a descriptor; what is empty is not there. It is not lookup, which
// would allocate for the interface.
func descriptor(req *headgate.Request, name string) (value string, present bool) {
	value, _ = req.Descriptors.Lookup(name)
	return value, value != ""
}

// appendIP appends an IPv4 address whole, and of an IPv6 address the first 64
// bits: the network that subscriber gives, at less cost.
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
