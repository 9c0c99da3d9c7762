package rule

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// maxNameLength bounds the names in keys and those of descriptor entries.
const maxNameLength = 128

// partNames are names to show how a part is written.
var partNames = [...]string{partHeader: "X-Client-Id", partCookie: "session", partClaim: "sub", partDescriptor: "tenant"}

// parseNamed reads the name of a part that has one.
func parseNamed(kind partKind, name string) (Part, error) {
	word := partWords[kind]
	example := "like " + word + ":" + partNames[kind]
	at := len(word) + 1
	bad, size, allowed := faultyName(kind, name)
	switch {
	case name == "":
		return Part{}, &ParseError{Problem: "key part " + word + " has no name", Fix: "write it " + example, Offset: len(word)}
	case size > 0:
		return Part{}, &ParseError{
			Problem: fmt.Sprintf("%s name %s has %q in it", word, quote(name), name[bad:bad+size]),
			Fix:     "write only " + allowed + ", " + example,
			Offset:  at + bad,
		}
	case len(name) > maxNameLength:
		return Part{}, &ParseError{
			Problem: fmt.Sprintf("%s name is %d bytes long", word, len(name)),
			Fix:     fmt.Sprintf("use at most %d", maxNameLength),
			Offset:  at + maxNameLength,
		}
	}
	if kind != partHeader {
		return Part{kind, name}, nil
	}
	name = canonicalHeader(name)
	if name == "Host" {
		return Part{}, &ParseError{Problem: "key part header:Host is never there", Fix: "write host", Offset: 0}
	}
	return Part{kind, name}, nil
}

// faultyName gives position and size of what cannot stand in a name of the kind,
// and what can; size is 0 when the name has no such fault.
func faultyName(kind partKind, name string) (at, size int, allowed string) {
	if kind == partClaim || kind == partDescriptor {
		at, size = faultyPrintable(name)
		return at, size, "printable characters without spaces"
	}
	if at = faultyTokenByte(name); at >= 0 {
		size = 1
	}
	return at, size, "letters, digits, - and _"
}

// faultyPrintable gives position and size of the first character that a claim or a
// descriptor entry cannot have in its name: spaces, and what nobody sees. Any
// other text can be a name, in any script: claims are often URLs. size is 0 when
// there is none.
func faultyPrintable(text string) (at, size int) {
	for at < len(text) {
		r, width := utf8.DecodeRuneInString(text[at:])
		if r == ' ' || !unicode.IsPrint(r) || r == utf8.RuneError && width == 1 {
			return at, width
		}
		at += width
	}
	return at, 0
}
