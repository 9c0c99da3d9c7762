package rule

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"

	"github.com/headgate/headgate"
)

// KeyNames formats the parts of keys for logs and tables. A value appears as plain text
// or as a keyed hash. Equal values have equal hashes, and a hash does not reveal its
// value:
//
//	header:X-Client-Id="me" ip=192.0.2.1
//	header:X-Client-Id=5d4f1b0c9a3e8d7762f1a0b4c5d6e7f8 ip=0a1b2c3d4e5f60718293a4b5c6d7e8f9
//
// The hash is the first half of HMAC-SHA-256 over the part, "=" and the value, with a
// secret. Without a secret an attacker could find an address by hashing all addresses.
// Instances with the same secret compute the same hashes.
// KeyNames is safe for concurrent use.
type KeyNames struct {
	hashed bool // otherwise values are plain text
	// inner and outer are the padded secret of HMAC (RFC 2104). Package crypto/hmac would
	// allocate for each hash.
	inner, outer [sha256.BlockSize]byte
}

// nameHashLength is the number of bytes of the HMAC in a name. With 128 bits, two
// values practically never have the same hash.
const nameHashLength = 16

// PlainKeyNames returns KeyNames that write values as plain text.
func PlainKeyNames() *KeyNames { return new(KeyNames) }

// HashedKeyNames returns KeyNames that write hashes of values with the secret.
func HashedKeyNames(secret []byte) *KeyNames {
	n := &KeyNames{hashed: true}
	if len(secret) > sha256.BlockSize {
		sum := sha256.Sum256(secret)
		secret = sum[:]
	}
	copy(n.inner[:], secret)
	copy(n.outer[:], secret)
	for i := range n.inner {
		n.inner[i] ^= 0x36
		n.outer[i] ^= 0x5c
	}
	return n
}

// AppendKey appends the parts of a key that Rule.AppendKey built, without the rule's
// name. AppendKey allocates nothing if dst has enough capacity. AppendKey appends nothing for a key
// that no rule built.
func (n *KeyNames) AppendKey(dst []byte, key string) []byte {
	_, rest, ok := cutName(withoutMark(key))
	first := true
	for ok && rest != "" {
		var part Part
		var value string
		var missing, digested bool
		if part, rest, ok = cutPart(rest); !ok {
			break
		}
		if !first {
			dst = append(dst, ' ')
		}
		first = false
		dst = part.appendTo(dst)
		if part.kind == partNone || part.kind == partAll {
			continue
		}
		if value, rest, missing, digested, ok = cutValue(rest); !ok {
			break
		}
		dst = n.appendNamed(append(dst, '='), part, value, missing, digested)
	}
	return dst
}

// AppendClient appends a part and a client name that Part.AppendClient returned.
func (n *KeyNames) AppendClient(dst []byte, part Part, client string) []byte {
	dst = append(part.appendTo(dst), '=')
	if client == "" {
		return append(dst, missingText...)
	}
	return n.appendText(dst, part, client)
}

// AppendPart appends the value of a part of a request, in the form in which AppendKey has it after the part and "=", but without
// quotes. It reports false, and appends nothing, if the request has no value. AppendPart allocates nothing for values of at most 128
// bytes if dst has enough capacity.
func (n *KeyNames) AppendPart(dst []byte, part Part, req *headgate.Request) (text []byte, present bool) {
	if part.isAddress() {
		var address, network [len("2001:db8:1111:2222::/64") + 16]byte
		var key []byte
		const prefixes, length = 2, 1 // bytes before the value
		value := length
		if part.v4 > 0 {
			key, present = part.appendNetwork(address[:0], req)
			value += prefixes
		} else {
			key, present = appendIP(address[:0], part.address(req))
		}
		if !present {
			return dst, false
		}
		return n.appendValue(dst, part, string(part.appendNetworkText(network[:0], string(key[value:])))), true
	}
	value, present := part.lookup(req)
	if !present {
		return dst, false
	}
	return n.AppendValue(dst, part, value), true
}

// AppendValue appends the value of a part whose text is known, as AppendPart does. The value of an address part is the text of its network,
// such as 192.0.2.1 or 2001:db8::/64.
func (n *KeyNames) AppendValue(dst []byte, part Part, value string) []byte {
	if len(value) <= maxValueLength {
		return n.appendValue(dst, part, value)
	}
	sum := digest(value)
	var text [len(digestWord) + 2*digestLength]byte
	return n.appendValue(dst, part, string(hex.AppendEncode(append(text[:0], digestWord...), sum[:])))
}

// appendValue appends a value without quotes, or its hash.
func (n *KeyNames) appendValue(dst []byte, part Part, value string) []byte {
	if n.hashed {
		return n.appendHash(dst, part, value)
	}
	return append(dst, value...)
}

// Hashes reports whether values appear as hashes.
func (n *KeyNames) Hashes() bool { return n.hashed }

// appendNamed appends a part and its value.
func (n *KeyNames) appendNamed(dst []byte, part Part, value string, missing, digested bool) []byte {
	switch {
	case missing && part.kind == partRegion:
		return append(dst, unknownText...)
	case missing:
		return append(dst, missingText...)
	case digested:
		text := hex.AppendEncode(append(make([]byte, 0, len(digestWord)+2*digestLength), digestWord...), []byte(value))
		return n.appendText(dst, part, string(text))
	case part.isAddress():
		var text [len("2001:db8:1111:2222::/64") + 16]byte
		return n.appendText(dst, part, string(part.appendNetworkText(text[:0], value)))
	default:
		return n.appendText(dst, part, value)
	}
}

// digestWord is the prefix for a value of which the key has only the digest.
const digestWord = "sha256:"

// appendNetworkText appends the text of an address or a network in a key.
func (p Part) appendNetworkText(dst []byte, value string) []byte {
	v4, v6 := p.prefixes()
	if len(value) == 4 {
		return appendSubscriber(dst, netip.PrefixFrom(netip.AddrFrom4([4]byte([]byte(value))), v4))
	}
	var address [16]byte
	copy(address[:], value)
	return netip.PrefixFrom(netip.AddrFrom16(address), v6).AppendTo(dst)
}

// appendText appends a value, or its hash.
func (n *KeyNames) appendText(dst []byte, part Part, value string) []byte {
	switch {
	case n.hashed:
		return n.appendHash(dst, part, value)
	case part.isAddress():
		return append(dst, value...)
	default:
		return strconv.AppendQuote(dst, value)
	}
}

// appendHash appends the first half of the HMAC. appendHash builds the HMAC input in the free
// capacity of dst, because a separate buffer would be an allocation.
func (n *KeyNames) appendHash(dst []byte, part Part, value string) []byte {
	from := len(dst)
	dst = append(append(part.appendTo(append(dst, n.inner[:]...)), '='), value...)
	sum := sha256.Sum256(dst[from:])
	var outer [sha256.BlockSize + sha256.Size]byte
	copy(outer[:], n.outer[:])
	copy(outer[sha256.BlockSize:], sum[:])
	sum = sha256.Sum256(outer[:])
	return hex.AppendEncode(dst[:from], sum[:nameHashLength])
}

// cutName removes a name from the start of a key.
func cutName(key string) (name, rest string, ok bool) {
	var length uint64
	for i := range min(len(key), binary.MaxVarintLen64) {
		length |= uint64(key[i]&0x7f) << (7 * i)
		if key[i] < 0x80 {
			rest = key[i+1:]
			if length > uint64(len(rest)) {
				return "", "", false
			}
			return rest[:length], rest[length:], true
		}
	}
	return "", "", false
}

// cutPart removes a part, without its value, from the start of a key.
func cutPart(key string) (part Part, rest string, ok bool) {
	part.kind, rest = partKind(key[0]), key[1:]
	if int(part.kind) >= len(partTable) {
		return Part{}, "", false
	}
	switch {
	case part.kind.isNetwork():
		if len(rest) < 2 || !validPrefixes(int(rest[0]), int(rest[1])) {
			return Part{}, "", false
		}
		part.v4, part.v6 = rest[0], rest[1]
		return part, rest[2:], true
	case !part.kind.named():
		return part, rest, true
	}
	part.name, rest, ok = cutName(rest)
	return part, rest, ok
}

// cutValue removes the value of a part from the start of a key.
func cutValue(key string) (value, rest string, missing, digested, ok bool) {
	if key == "" {
		return "", "", false, false, false
	}
	length := int(key[0])
	switch rest = key[1:]; {
	case key[0] == markMissing:
		return "", rest, true, false, true
	case key[0] == markDigest:
		length, digested = digestLength, true
	case length > maxValueLength:
		return "", "", false, false, false
	}
	if length > len(rest) {
		return "", "", false, false, false
	}
	return rest[:length], rest[length:], false, digested, true
}

// appendTo appends the part in the form of the configuration.
func (p Part) appendTo(dst []byte) []byte {
	if p.kind == partNone || int(p.kind) >= len(partTable) {
		return append(dst, "none"...)
	}
	dst = append(dst, partTable[p.kind].word...)
	switch {
	case p.kind.isVariable():
		dst = append(append(append(dst, ":{"...), p.name...), '}')
	case p.name != "":
		dst = append(append(dst, ':'), p.name...)
	}
	return p.appendPrefixes(dst)
}
