package rule

import (
	"encoding/hex"
	"net/netip"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// MaxClientName is the maximum length of a client's name, in bytes.
const MaxClientName = maxValueLength

const (
	// shownName is the number of bytes of an invalid text that its replacement name keeps.
	shownName = 64
	// digestMark separates these bytes from the digest.
	digestMark = '~'
)

// AppendClient appends the client name that this part of the request gives. It
// allocates nothing if dst has enough capacity. AppendClient leaves dst unchanged and reports
// false when the part is missing or empty, and for the part all.
//
// A name is valid UTF-8 without control characters and has at most MaxClientName
// bytes. Tables, logs, JSON and labels can therefore show it unchanged. ClientName
// replaces any other text. The name of an IPv4 address is its text, and the name of
// an IPv6 address is the text of its /64. A part with networks of its own, such as ip/24, gives the text of a network.
func (p Part) AppendClient(dst []byte, req *headgate.Request) (name []byte, ok bool) {
	switch {
	case p.kind == partNone || p.kind == partAll:
		return dst, false
	case p.isAddress():
		counted := p.subscriber(p.address(req))
		if !counted.IsValid() {
			return dst, false
		}
		return appendSubscriber(dst, counted), true
	}
	text, present := p.lookup(req)
	if !present || text == "" {
		return dst, false
	}
	return appendClientName(dst, text), true
}

// appendSubscriber appends an IPv4 address that counts alone, and else the network that counts as one client.
func appendSubscriber(dst []byte, counted netip.Prefix) []byte {
	if counted.Addr().Is4() && counted.Bits() == usualV4 {
		return counted.Addr().AppendTo(dst)
	}
	return counted.AppendTo(dst)
}

// ClientName returns the name of a client that sent text. This is text itself, unless
// text is longer than MaxClientName, is not UTF-8 or has unprintable characters. Such
// a text gets a name of its first bytes and a digest: "acme~" and 32 hexadecimal
// digits. Two different texts never share a name, because ClientName also replaces a
// text of that form.
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

// isClientName reports whether a client name may be text itself.
func isClientName(text string) bool {
	return len(text) <= MaxClientName && printable(text, len(text)) == len(text) && !endsInDigest(text)
}

// printable returns the length of the printable UTF-8 characters at the start of text,
// at most the given number of bytes.
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

// endsInDigest reports whether text has the form of a replacement name.
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
