package rule

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/headgate/headgate"
)

// MaxResource bounds the name of a resource, in bytes.
const MaxResource = 256

// longPart is the length of a part in a name that is too long: %~ and a digest in hexadecimal digits.
const longPart = 2 + 2*digestLength

// Resource is the name of the resource of a rule, in which {1} to {3} stand for the parts of the rule's key. The zero
// Resource has the empty name.
type Resource struct {
	text   string
	pieces []string // The texts around the parts.
	parts  []Part   // One less than pieces.
	most   int      // The bytes of each part.
}

// ParseResource parses the name of a resource for a rule with a key. The error is a *ParseError.
func ParseResource(text string, key []Part) (Resource, error) {
	r := Resource{text: text}
	piece, fixed := 0, 0
	for i := 0; i < len(text); i++ {
		if text[i] != '{' {
			continue
		}
		n := 0
		if i+2 < len(text) && text[i+1] >= '1' && text[i+1] <= '9' && text[i+2] == '}' {
			n = int(text[i+1] - '0')
		}
		if err := checkPlace(text, i, n, key); err != nil {
			return Resource{}, err
		}
		r.pieces, r.parts = append(r.pieces, text[piece:i]), append(r.parts, key[n-1])
		fixed += i - piece
		piece = i + len("{1}")
		i = piece - 1
	}
	r.pieces = append(r.pieces, text[piece:])
	fixed += len(text) - piece
	if len(r.parts) > 0 {
		r.most = (MaxResource - fixed) / len(r.parts)
	}
	switch {
	case text == "":
		return Resource{}, &ParseError{Problem: "the resource has no name", Fix: "write the name of a resource, like db/orders or db/{1}"}
	case fixed > MaxResource || len(r.parts) > 0 && r.most < longPart:
		return Resource{}, &ParseError{
			Problem: fmt.Sprintf("the name has %d bytes without its parts", fixed),
			Fix:     fmt.Sprintf("use at most %d, so that each part has %d", MaxResource-longPart*len(r.parts), longPart),
		}
	}
	return r, nil
}

// checkPlace checks a brace of a name, which is {n} for an n above 0.
func checkPlace(text string, at, n int, key []Part) error {
	switch {
	case n == 0:
		return &ParseError{
			Problem: "a brace in " + quote(text) + " is no place of a part", Fix: "write {1} for the first part of the key", Offset: at,
		}
	case n > len(key):
		return &ParseError{
			Problem: fmt.Sprintf("the key has no part {%d}", n),
			Fix:     fmt.Sprintf("use {1} to {%d}, or add a part to key", len(key)), Offset: at,
		}
	case key[n-1].kind == partAll:
		return &ParseError{
			Problem: "the part all has no value for " + text[at:at+3],
			Fix:     "remove " + text[at:at+3] + ", or use a part that differs between clients", Offset: at,
		}
	}
	return nil
}

// String returns the text that was parsed.
func (r *Resource) String() string { return r.text }

// Append appends the name for a request. It allocates nothing if dst has enough capacity.
//
// A part is its value, in which bytes other than letters, digits and -._~:@ are written as %XX, so that no value contains a /.
// A value that is too long is %~ and its digest. A missing value is a lone %. So two different values never give one
// name.
func (r *Resource) Append(dst []byte, req *headgate.Request) []byte {
	for i, piece := range r.pieces {
		dst = append(dst, piece...)
		if i < len(r.parts) {
			dst = r.appendPart(dst, r.parts[i], req)
		}
	}
	return dst
}

func (r *Resource) appendPart(dst []byte, p Part, req *headgate.Request) []byte {
	if p.isAddress() {
		return appendAddressName(dst, p.subscriber(p.address(req)))
	}
	value, present := p.lookup(req)
	if !present {
		return append(dst, '%')
	}
	length := 0
	for i := 0; i < len(value) && length <= r.most; i++ {
		if length++; !plain(value[i]) {
			length += 2
		}
	}
	if length > r.most {
		sum := digest(value)
		dst = append(dst, '%', '~')
		for _, b := range sum {
			dst = append(dst, hexDigits[b>>4], hexDigits[b&15])
		}
		return dst
	}
	for i := range len(value) {
		if c := value[i]; plain(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return dst
}

const hexDigits = "0123456789ABCDEF"

// plain reports whether a byte stands for itself in the name of a resource.
func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~:@", c) >= 0
}

// appendAddressName appends an IPv4 address, or the first address of a network, as keys count them.
func appendAddressName(dst []byte, counted netip.Prefix) []byte {
	if !counted.IsValid() {
		return append(dst, '%')
	}
	return counted.Addr().AppendTo(dst)
}
