package rule

import (
	"fmt"
	"slices"
	"strings"
)

// MaxParts limits the parts of one key. A longer key is hard to understand, and every
// part multiplies the number of keys.
const MaxParts = 3

// Part is one part of a key: a value of the request by which clients are counted
// separately. ParsePart returns a Part. Parts can be compared with ==.
type Part struct {
	kind partKind
	name string // of a header (in canonical spelling), a cookie, a claim or a descriptor entry
}

// partKind is the kind of a part. Keys contain these numbers and stores keep the keys,
// so a number must never change its meaning.
type partKind uint8

const (
	partNone partKind = iota // the kind of the zero Part
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
	// partCustomer is only in keys of customers. A configuration cannot write it.
	partCustomer
)

// partWords are the words of the kinds. partNone has no word.
var partWords = [...]string{
	partAll: "all", partIP: "ip", partPath: "path", partMethod: "method", partHost: "host",
	partHeader: "header", partCookie: "cookie",
	partXFFIP: "xff_ip", partUserIP: "user_ip", partRegion: "region", partSubject: "mtls_subject",
	partClaim: "jwt", partDescriptor: "descriptor",
	partCustomer: "customer",
}

// partSynonymsTable has the names of the parts in other products.
var partSynonymsTable = map[string]partKind{
	"client_ip": partIP, "remote_ip": partIP, "remote_addr": partIP, "remote_address": partIP,
	"x_forwarded_for": partXFFIP, "forwarded_for": partXFFIP,
}

const knownParts = "all, ip, xff_ip, user_ip, region, path, method, host, " +
	"header:NAME, cookie:NAME, mtls_subject, jwt:CLAIM, descriptor:NAME"

// ParsePart parses a key part of the configuration: all, ip, xff_ip, user_ip, region,
// path, method, host, header:NAME, cookie:NAME, mtls_subject, jwt:CLAIM or
// descriptor:NAME. The name starts after the first colon, so a claim may be a URL. The
// error is a *ParseError.
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
	for kind := partAll; kind < partCustomer; kind++ {
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
	if near := Nearest(word, partWords[partAll:partCustomer]); near != "" {
		fix = "did you mean " + near + "? " + fix
	}
	return &ParseError{Problem: "key part " + quote(text) + " is not known", Fix: fix}
}

// named reports whether parts of the kind have a name, which is then part of the key.
func (k partKind) named() bool {
	switch k {
	case partHeader, partCookie, partClaim, partDescriptor:
		return true
	default:
		return false
	}
}

// String returns the part in the form of the configuration.
func (p Part) String() string {
	if p.name == "" && p.kind != partNone && int(p.kind) < len(partWords) {
		return partWords[p.kind] // This return allocates nothing.
	}
	return string(p.appendTo(nil))
}

// CheckKey checks the parts of one key together. A key has one to three parts without
// duplicates. The part all must be alone. The error is a *KeyError.
func CheckKey(parts []Part) error {
	switch {
	case len(parts) == 0:
		return &KeyError{0, "has no part", "write what identifies a client, like ip or header:X-Client-Id; all counts all clients together"}
	case len(parts) > MaxParts:
		return &KeyError{MaxParts, fmt.Sprintf("has %d parts", len(parts)), fmt.Sprintf("use at most %d", MaxParts)}
	}
	for i, p := range parts {
		switch {
		case p.kind == partNone:
			return &KeyError{i, "has an empty part", "use ParsePart"}
		case p.kind == partAll && len(parts) > 1:
			return &KeyError{i, "has all together with other parts", "remove all, because the other parts identify the client"}
		case slices.Contains(parts[:i], p):
			return &KeyError{i, "has " + p.String() + " twice", "remove one of them"}
		}
	}
	return nil
}

// Verified reports whether the part is a claim of a verified token or the subject of a
// verified certificate. Clients cannot invent such values.
func (p Part) Verified() bool { return p.kind == partClaim || p.kind == partSubject }
