package rule

import (
	"fmt"
	"slices"
	"strings"
)

// MaxParts bounds the parts of one key: more than three say who is counted in a
// way that nobody can follow, and every further part multiplies the keys.
const MaxParts = 3

// Part is one part of a key: what of a request tells those apart who are counted
// apart. ParsePart makes it; parts compare with ==.
type Part struct {
	kind partKind
	name string // of a header (in canonical spelling), a cookie, a claim or a descriptor entry
}

// partKind tells the parts apart, in keys too: stores hold these numbers, so that
// none may ever change its meaning.
type partKind uint8

const (
	partNone partKind = iota // the zero Part is none
	partAll
	partIP
	partPath
	partMethod
	partHost
	partHeader
	partCookie
	partXFFIP
	partUserIP
	partRegion
	partSubject
	partClaim
	partDescriptor
)

// partWords are the words of the kinds; partNone has none.
var partWords = [...]string{
	partAll: "all", partIP: "ip", partPath: "path", partMethod: "method", partHost: "host",
	partHeader: "header", partCookie: "cookie",
	partXFFIP: "xff_ip", partUserIP: "user_ip", partRegion: "region", partSubject: "mtls_subject",
	partClaim: "jwt", partDescriptor: "descriptor",
}

// partSynonymsTable are what others call the parts.
var partSynonymsTable = map[string]partKind{
	"client_ip": partIP, "remote_ip": partIP, "remote_addr": partIP, "remote_address": partIP,
	"x_forwarded_for": partXFFIP, "forwarded_for": partXFFIP,
}

const knownParts = "all, ip, xff_ip, user_ip, region, path, method, host, " +
	"header:NAME, cookie:NAME, mtls_subject, jwt:CLAIM, descriptor:NAME"

// ParsePart reads a part of a key as configurations write it: all, ip, xff_ip,
// user_ip, region, path, method, host, header:NAME, cookie:NAME, mtls_subject,
// jwt:CLAIM or descriptor:NAME. What follows the first colon is the name, so that
// the claim may be a URL. The error is a *ParseError.
func ParsePart(text string) (Part, error) {
	word, name, colon := strings.Cut(text, ":")
	kind := partKindOf(word)
	switch {
	case kind == partNone:
		return Part{}, unknownPart(text, word)
	case kind.named():
		return parseNamed(kind, name)
	case colon:
		return Part{}, &ParseError{
			Problem: "key part " + word + " takes no name", Fix: "write " + word, Offset: len(word),
		}
	default:
		return Part{kind: kind}, nil
	}
}

func partKindOf(word string) partKind {
	for kind := partAll; int(kind) < len(partWords); kind++ {
		if partWords[kind] == word {
			return kind
		}
	}
	return partNone
}

func unknownPart(text, word string) error {
	fix := "use one of " + knownParts
	if kind, known := partSynonymsTable[word]; known {
		return &ParseError{Problem: "key part " + quote(text) + " is called " + partWords[kind] + " here", Fix: "write " + partWords[kind]}
	}
	if near := Nearest(word, partWords[partAll:]); near != "" {
		fix = "did you mean " + near + "? " + fix
	}
	return &ParseError{Problem: "key part " + quote(text) + " is not known", Fix: fix}
}

// named reports whether parts of the kind have a name, which then stands in keys.
func (k partKind) named() bool {
	switch k {
	case partHeader, partCookie, partClaim, partDescriptor:
		return true
	default:
		return false
	}
}

// String gives the part as configurations write it.
func (p Part) String() string {
	if p.name == "" && p.kind != partNone && int(p.kind) < len(partWords) {
		return partWords[p.kind] // Without an allocation.
	}
	return string(p.appendTo(nil))
}

// CheckKey checks the parts of one key together: one to three, none twice, and
// all stands alone, since it would add nothing to others. The error is a *KeyError.
func CheckKey(parts []Part) error {
	switch {
	case len(parts) == 0:
		return &KeyError{0, "has no part", "write who is counted, like ip or header:X-Client-Id; all counts everybody together"}
	case len(parts) > MaxParts:
		return &KeyError{MaxParts, fmt.Sprintf("has %d parts", len(parts)), fmt.Sprintf("use at most %d", MaxParts)}
	}
	for i, p := range parts {
		switch {
		case p.kind == partNone:
			return &KeyError{i, "has an empty part", "use ParsePart"}
		case p.kind == partAll && len(parts) > 1:
			return &KeyError{i, "has all beside other parts", "leave all out: the others tell requests apart"}
		case slices.Contains(parts[:i], p):
			return &KeyError{i, "has " + p.String() + " twice", "leave one out"}
		}
	}
	return nil
}

// Verified reports whether clients cannot invent values of the part: it is a claim of a
// verified token, or the subject of a verified certificate.
func (p Part) Verified() bool { return p.kind == partClaim || p.kind == partSubject }
