package http1

import (
	"net/textproto"
	"strings"
)

// Notes tell which fields that concern the connection or the body are present.
type Notes struct {
	// Hosts and Lengths are the numbers of Host and Content-Length lines.
	Hosts, Lengths int
	// Host and Length are the values of the last of them.
	Host, Length string
	// TransferEncoding, Expect, Upgrade and Trailer say that the field is present. Trailer
	// also stands for TE.
	TransferEncoding, Expect, Upgrade, Trailer bool
	// Close says that a Connection line is "close". Options says that one has another
	// value than "close" and "keep-alive".
	Close, Options bool
	// Many says that there are more than MostListed lines.
	Many bool
}

// Parse replaces the fields by the lines of text, up to and with the empty line at its end. It
// returns false for a line that is not in strict form: "Name: value", where the name is a
// token, the value has no control characters except tabs inside, and CRLF ends the line. It also returns false
// for more than MostListed lines. After false, the List has some of the fields. Blanks around values
// are removed. Names and values share the memory of text.
func (l *List) Parse(text string) (Notes, bool) {
	l.Reset()
	for {
		end := strings.IndexByte(text, '\n')
		switch {
		case end < 1 || text[end-1] != '\r':
			return l.notes, false
		case end == 1:
			return l.notes, len(text) == len("\r\n")
		}
		if l.notes.Many = len(l.names) == MostListed; l.notes.Many || !l.line(text[:end-1]) {
			return l.notes, false
		}
		text = text[end+1:]
	}
}

// line reads one line without its end.
func (l *List) line(line string) bool {
	name, rest, canonical := cutName(line)
	if name == "" {
		return false
	}
	value, ok := trimValue(rest)
	if !ok {
		return false
	}
	if !canonical {
		name = textproto.CanonicalMIMEHeaderKey(name)
	}
	l.note(name, value)
	l.Add(name, value)
	return true
}

// cutName returns the name before the colon, or "" if it is not a token. canonical says
// that the name is written as net/http writes it.
func cutName(line string) (name, rest string, canonical bool) {
	canonical, upper := true, true
	for i := range len(line) {
		c := line[i]
		switch kind := bytesTable[c]; {
		case c == ':':
			return line[:i], line[i+1:], canonical
		case kind == notToken:
			return "", "", false
		case kind == upperCase:
			canonical = canonical && upper
		case kind == lowerCase:
			canonical = canonical && !upper
		}
		upper = c == '-'
	}
	return "", "", false
}

// The kinds of bytes in a name.
const (
	notToken byte = iota
	upperCase
	lowerCase
	otherToken
)

// bytesTable has the kind of each byte in a name (RFC 9110, section 5.6.2).
var bytesTable = func() (table [256]byte) {
	for c := range table {
		switch {
		case 'A' <= c && c <= 'Z':
			table[c] = upperCase
		case 'a' <= c && c <= 'z':
			table[c] = lowerCase
		case '0' <= c && c <= '9' || c < 0x80 && strings.IndexByte("!#$%&'*+-.^_`|~", byte(c)) >= 0:
			table[c] = otherToken
		}
	}
	return table
}()

// trimValue removes the blanks around a value. It returns false for a value with a control
// character.
func trimValue(s string) (value string, ok bool) {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "", false
		}
	}
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s, true
}

// note notes the fields that concern the connection or the body.
func (l *List) note(name, value string) {
	n := &l.notes
	switch name {
	case "Host":
		n.Hosts, n.Host = n.Hosts+1, value
	case "Content-Length":
		n.Lengths, n.Length = n.Lengths+1, value
	case "Transfer-Encoding":
		n.TransferEncoding = true
	case "Expect":
		n.Expect = true
	case "Upgrade":
		n.Upgrade = true
	case "Trailer", "Te":
		n.Trailer = true
	case "Connection":
		switch {
		case strings.EqualFold(value, "close"):
			n.Close = true
		case !strings.EqualFold(value, "keep-alive"):
			n.Options = true
		}
	}
}

// ParseLength reads a Content-Length. It returns false for anything but one to 18 digits.
func ParseLength(value string) (length int64, ok bool) {
	const most = 18 // more digits could overflow
	if value == "" || len(value) > most {
		return 0, false
	}
	for i := range len(value) {
		c := value[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		length = length*10 + int64(c-'0')
	}
	return length, true
}

// fixPragma adds Cache-Control: no-cache to a header with Pragma: no-cache, as net/http does
// with each header that it reads.
func (l *List) fixPragma() {
	if l.Get("Pragma") == "no-cache" && !l.Has("Cache-Control") {
		l.Add("Cache-Control", "no-cache")
	}
}
