package domain

import (
	"encoding/hex"
	"strconv"
)

// EntryNames writes entries of descriptors for logs. *rule.KeyNames implements it.
type EntryNames interface {
	// AppendEntry appends a name and its value, or a hash of the value.
	AppendEntry(dst []byte, name, value string) []byte
	// AppendEntryName appends a name alone.
	AppendEntryName(dst []byte, name string) []byte
}

// AppendKeyName appends the entries of a key that AppendKey built, without the domain, as names
// writes them. The word "all" stands before a wildcard that replaces the value:
//
//	descriptor:path=all "/search*" descriptor:user="42"
//
// The key may be cut off: the name then ends with "..." after the last complete entry.
func AppendKeyName(dst []byte, names EntryNames, key string) []byte {
	_, rest, ok := cutText(key)
	for first := true; ok && rest != ""; first = false {
		var e keyEntry
		if e, rest, ok = cutEntry(rest); !ok {
			break
		}
		if !first {
			dst = append(dst, ' ')
		}
		if e.shared {
			dst = append(names.AppendEntryName(dst, e.name), "=all "...)
			dst = strconv.AppendQuote(dst, e.value)
		} else {
			dst = names.AppendEntry(dst, e.name, e.value)
		}
	}
	if !ok {
		dst = append(dst, "..."...)
	}
	return dst
}

// keyEntry is an entry in a key. A wildcard in place of the value is shared.
type keyEntry struct {
	name, value string
	shared      bool
}

// cutEntry removes an entry from the start of a key.
func cutEntry(key string) (e keyEntry, rest string, ok bool) {
	if e.name, rest, ok = cutText(key); !ok || rest == "" {
		return e, rest, false
	}
	e.shared = rest[0] == markPattern
	e.value, rest, ok = cutText(rest[1:])
	return e, rest, ok
}

// digestWord begins a text of which the key has only the digest. Package rule has the same word.
const digestWord = "sha256:"

// cutText removes a text from the start of a key.
func cutText(key string) (text, rest string, ok bool) {
	if key == "" {
		return "", "", false
	}
	length, rest := int(key[0]), key[1:]
	digested := length == markDigest
	if digested {
		length = digestLength
	}
	if length > maxTextLength || length > len(rest) {
		return "", "", false
	}
	text, rest = rest[:length], rest[length:]
	if digested {
		text = digestWord + hex.EncodeToString([]byte(text))
	}
	return text, rest, true
}
