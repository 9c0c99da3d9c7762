package rule

import (
	"encoding/hex"
	"strconv"
	"unicode"

	"github.com/headgate/headgate"
)

// AppendEntries appends the entries of a descriptor like the parts of a key:
//
//	descriptor:client="a" descriptor:path="/x"
//
// A name or a value of more than 128 bytes appears as its digest, as in keys. Entries after the
// first most bytes are left out, and their number is appended.
func (n *KeyNames) AppendEntries(dst []byte, entries headgate.Descriptors, most int) []byte {
	from := len(dst)
	for i := range entries {
		end := len(dst)
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = n.AppendEntry(dst, entries[i].Name, entries[i].Value)
		if len(dst)-from > most {
			dst = append(append(dst[:end], " ...("...), strconv.Itoa(len(entries)-i)...)
			return append(dst, " more)"...)
		}
	}
	return dst
}

// AppendEntry appends one entry of a descriptor, as in AppendEntries.
func (n *KeyNames) AppendEntry(dst []byte, name, value string) []byte {
	part := Part{kind: partDescriptor, name: shortText(name)}
	dst = append(appendEntryName(dst, part.name), '=')
	return n.appendText(dst, part, shortText(value))
}

// AppendEntryName appends the name of an entry alone, as in AppendEntries.
func (*KeyNames) AppendEntryName(dst []byte, name string) []byte {
	return appendEntryName(dst, shortText(name))
}

// appendEntryName quotes a name that could be read as several parts.
func appendEntryName(dst []byte, name string) []byte {
	dst = append(append(dst, partTable[partDescriptor].word...), ':')
	if !isPlainName(name) {
		return strconv.AppendQuote(dst, name)
	}
	return append(dst, name...)
}

func isPlainName(name string) bool {
	for _, c := range name {
		if c == '=' || c == '"' || c == ' ' || c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return false
		}
	}
	return name != ""
}

// shortText returns a text as it is, or the text of its digest if it is longer than keys have it.
func shortText(text string) string {
	if len(text) <= maxValueLength {
		return text
	}
	sum := digest(text)
	return digestWord + hex.EncodeToString(sum[:])
}
