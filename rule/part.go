package rule

import (
	"fmt"
	"slices"
	"strings"
)

// MaxParts bounds the parts of one key: more than three say who is counted in a
// way that nobody can follow, and every further part multiplies the keys.
const MaxParts = 3

// maxNameLength bounds the names of headers and cookies in keys.
const maxNameLength = 128

// Part is one part of a key: what of a request tells those apart who are counted
// apart. ParsePart makes it; parts compare with ==.
type Part struct {
	kind partKind
	name string // of the header, in canonical spelling, or of the cookie
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
)

// partWords are the words of the kinds; partNone has none.
var partWords = [...]string{
	partAll: "all", partIP: "ip", partPath: "path", partMethod: "method", partHost: "host",
	partHeader: "header", partCookie: "cookie",
}

// laterWords are known to the design and not built yet.
var laterWords = [...]string{"xff_ip", "user_ip", "region", "mtls_subject", "jwt", "descriptor"}

// ParsePart reads a part of a key as configurations write it: all, ip, path,
// method, host, header:NAME or cookie:NAME. The error is a *ParseError; it wraps
// ErrNotSupported for words that are known and not built yet.
func ParsePart(text string) (Part, error) {
	word, name, named := strings.Cut(text, ":")
	kind := partKindOf(word)
	switch kind {
	case partNone:
		return Part{}, unknownPart(text, word)
	case partHeader, partCookie:
		return parseNamed(kind, name)
	default:
		if named {
			return Part{}, &ParseError{
				Problem: "key part " + word + " takes no name", Fix: "write " + word, Offset: len(word),
			}
		}
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

// unknownPart tells words that are not built yet from slips of the pen.
func unknownPart(text, word string) error {
	if slices.Contains(laterWords[:], word) {
		return &ParseError{
			Problem: "key part " + word + " is not supported yet", Fix: "use one of " + knownParts, cause: ErrNotSupported,
		}
	}
	words := slices.Concat(partWords[partAll:], laterWords[:])
	fix := "use one of " + knownParts
	if near := Nearest(word, words); near != "" {
		fix = "did you mean " + near + "? " + fix
	}
	return &ParseError{Problem: "key part " + quote(text) + " is not known", Fix: fix}
}

const knownParts = "all, ip, path, method, host, header:NAME, cookie:NAME"

// parseNamed reads the name of a header or a cookie.
func parseNamed(kind partKind, name string) (Part, error) {
	word := partWords[kind]
	example := word + ":X-Client-Id"
	if kind == partCookie {
		example = word + ":session"
	}
	at := len(word) + 1
	bad := faultyTokenByte(name)
	switch {
	case name == "":
		return Part{}, &ParseError{Problem: "key part " + word + " has no name", Fix: "write it like " + example, Offset: len(word)}
	case bad >= 0:
		return Part{}, &ParseError{
			Problem: fmt.Sprintf("%s name %s has %q in it", word, quote(name), name[bad:bad+1]),
			Fix:     "write only letters, digits, - and _, like " + example,
			Offset:  at + bad,
		}
	case len(name) > maxNameLength:
		return Part{}, &ParseError{
			Problem: fmt.Sprintf("%s name is %d bytes long", word, len(name)),
			Fix:     fmt.Sprintf("use at most %d", maxNameLength),
			Offset:  at + maxNameLength,
		}
	}
	if kind == partCookie {
		return Part{kind, name}, nil
	}
	name = canonicalHeader(name)
	if name == "Host" {
		return Part{}, &ParseError{Problem: "key part header:Host is never there", Fix: "write host", Offset: 0}
	}
	return Part{kind, name}, nil
}

// String gives the part as configurations write it.
func (p Part) String() string {
	switch {
	case p.kind == partNone || int(p.kind) >= len(partWords):
		return "none"
	case p.name != "":
		return partWords[p.kind] + ":" + p.name
	default:
		return partWords[p.kind]
	}
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
