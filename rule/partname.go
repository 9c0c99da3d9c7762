package rule

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNameLength limits the names in keys and the names of descriptor entries.
const maxNameLength = 128

// parseNamed parses the name of a part.
func parseNamed(kind partKind, name string) (Part, error) {
	word := partTable[kind].word
	example := "like " + word + ":" + partTable[kind].example
	at := len(word) + 1
	bad, size, allowed := faultyName(kind, name)
	switch {
	case name == "":
		return Part{}, &ParseError{Problem: "key part " + word + " has no name", Fix: "write it " + example, Offset: len(word)}
	case size > 0:
		return Part{}, &ParseError{
			Problem: fmt.Sprintf("%s name %s contains %q", word, quote(name), name[bad:bad+size]),
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
	f := namePatternFault(name)
	if kind == partQuery && hasEscape(name) {
		f = fault{"name " + quote(name) + " is percent-encoded", "write it decoded"}
	}
	if kind == partJSON {
		f = jsonPartFault(name)
	}
	if f != (fault{}) {
		return Part{}, &ParseError{Problem: word + " " + f.problem, Fix: f.fix, Offset: at}
	}
	if kind != partHeader {
		return Part{kind: kind, name: name}, nil
	}
	name = canonicalHeader(name)
	if name == "Host" {
		return Part{}, &ParseError{Problem: "key part header:Host is never present", Fix: "write host", Offset: 0}
	}
	return Part{kind: kind, name: name}, nil
}

// jsonPartFault finds the fault of the path of a part json:FIELD.
func jsonPartFault(path string) fault {
	if path == modelName {
		return fault{"name model is the model", "write model"}
	}
	f := checkBodyPath(path)
	if f != (fault{}) {
		f.problem = "path " + quote(path) + " " + f.problem
	}
	return f
}

// parseVariable parses what follows path: or host:, the name of a variable in braces.
func parseVariable(kind partKind, text string) (Part, error) {
	word := partTable[kind].word
	name, braced := strings.CutPrefix(text, "{")
	name, closed := strings.CutSuffix(name, "}")
	bare, _, _ := strings.Cut(strings.TrimSuffix(name, restWord), ":")
	reader := templateReader{text: text}
	valid := reader.name(bare, bare) == (fault{})
	if valid && braced && closed && name == bare {
		return Part{kind: kind.variable(), name: name}, nil
	}
	if !valid {
		bare = strings.Trim(partTable[kind.variable()].example, "{}")
	}
	return Part{}, &ParseError{
		Problem: "key part " + quote(word+":"+text) + " is no name of a variable in braces", Offset: len(word) + 1,
		Fix: "write " + word + ":{" + bare + "} for what {" + bare + "} stands for in match, or " + word + " for all of it",
	}
}

// variable is the kind of the parts with a variable of the path or the host.
func (k partKind) variable() partKind {
	if k == partHost {
		return partHostName
	}
	return partPathName
}

// faultyName returns the position and size of an invalid character in a name of the
// kind, and the allowed characters. size is 0 for a valid name.
func faultyName(kind partKind, name string) (at, size int, allowed string) {
	if partTable[kind].printable {
		at, size = faultyPrintable(name)
		return at, size, "printable characters without spaces"
	}
	if at = faultyTokenByte(name); at >= 0 {
		size = 1
	}
	return at, size, "letters, digits, - and _"
}

// faultyPrintable returns the position and size of the first space or unprintable
// character of a text. size is 0 without such a character. Names of claims and of
// descriptor entries may have any other character, because claims are often URLs.
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
