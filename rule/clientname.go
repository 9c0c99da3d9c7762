package rule

import (
	"encoding/hex"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// MaxClientName bounds the names of clients, in bytes.
const MaxClientName = maxValueLength

const (
	// shownName is how much of a text that is no name itself begins the name that
	// stands for it.
	shownName = 64
	// digestMark stands between that and the digest.
	digestMark = '~'
)

// AppendClient appends the name of the client that the part of a request says, and
// allocates nothing when dst has room. It is not ok when the request lacks the part,
// or has nothing in it, and for all, which names nobody; dst is then as it was.
//
// A name is valid UTF-8 without control characters, at most MaxClientName bytes long,
// so that it can stand in tables, logs, JSON and labels as it is. What a client says
// is its name if it is like that; ClientName tells what stands for any other text. Of
// an address it is the text, and of an IPv6 address that of its /64.
func (p Part) AppendClient(dst []byte, req *headgate.Request) (name []byte, ok bool) {
	switch {
	case p.kind == partNone || p.kind == partAll:
		return dst, false
	case p.isAddress():
		counted := subscriber(p.address(req))
		switch {
		case !counted.IsValid():
			return dst, false
		case counted.Addr().Is4():
			return counted.Addr().AppendTo(dst), true
		default:
			return counted.AppendTo(dst), true
		}
	}
	text, present := p.lookup(req)
	if !present || text == "" {
		return dst, false
	}
	return appendClientName(dst, text), true
}

// ClientName gives the name of a client that says text: text itself, or the begin of
// it and its digest ("acme~" and 32 hexadecimal digits) when it is longer than
// MaxClientName, no UTF-8, or has characters that nobody sees or that terminals obey.
// Two texts have two names: what looks like a begin and a digest is no name itself.
func ClientName(text string) string {
	if isClientName(text) {
		return text
	}
	return string(appendClientName(nil, text))
}

func appendClientName(dst []byte, text string) []byte {
	if isClientName(text) {
		return append(dst, text...)
	}
	dst = append(dst, text[:printable(text, shownName)]...)
	sum := digest(text)
	return hex.AppendEncode(append(dst, digestMark), sum[:])
}

// isClientName reports whether text is the name of who says it.
func isClientName(text string) bool {
	return len(text) <= MaxClientName && printable(text, len(text)) == len(text) && !endsInDigest(text)
}

// printable gives how many of the first most bytes of a text are whole printable
// characters of UTF-8, up to the first that is none.
func printable(text string, most int) int {
	at := 0
	for at < len(text) {
		size := 1
		if c := text[at]; c < ' ' || c == 0x7f {
			return at
		} else if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(text[at:]); !unicode.IsPrint(r) || r == utf8.RuneError && size == 1 {
				return at
			}
		}
		if at+size > most {
			return at
		}
		at += size
	}
	return at
}

// endsInDigest reports whether text has the form of a name that stands for another text.
func endsInDigest(text string) bool {
	at := len(text) - 2*digestLength - 1
	if at < 0 || text[at] != digestMark {
		return false
	}
	for _, c := range []byte(text[at+1:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
