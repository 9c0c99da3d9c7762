package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a command.
const (
	// bufferSize bounds a command, and what is read ahead.
	bufferSize = 64 << 10
	// maxArguments bounds the arguments of a command, with its name.
	maxArguments = 128
)

// protocolError says that a client does not speak the protocol. The connection cannot go on.
type protocolError struct{ text string }

// Error gives the text for the client.
func (e *protocolError) Error() string { return "Protocol error: " + e.text }

func faultf(format string, values ...any) error {
	return &protocolError{fmt.Sprintf(format, values...)}
}

// reader parses commands. Its memory can be used for many.
type reader struct {
	args [][]byte // of all commands since reset; they point to the parsed bytes
}

func (r *reader) reset() {
	clear(r.args)
	r.args = r.args[:0]
}

// parse appends the arguments of the first command in b to args, and gives its length. The length is 0
// when b ends before the command. An empty command has no arguments. After an error args has
// not grown. Arguments with quotes replace their bytes in b: they are never longer, and memory for them would double what a
// connection takes.
func (r *reader) parse(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	before := len(r.args)
	if b[0] == '*' {
		n, err = r.parseArray(b)
	} else {
		n, err = r.parseInline(b)
	}
	if n == 0 || err != nil {
		r.args = r.args[:before]
	}
	return n, err
}

// parseArray parses an array of bulk strings.
func (r *reader) parseArray(b []byte) (int, error) {
	count, at, err := parseCount(b, "multibulk length")
	if at == 0 || err != nil {
		return 0, err
	}
	if count > maxArguments {
		return 0, faultf("invalid multibulk length: send at most %d arguments", maxArguments)
	}
	for range count {
		if at == len(b) {
			return 0, nil
		}
		if b[at] != '$' {
			return 0, faultf("expected '$', got %s", quoteByte(b[at]))
		}
		size, used, err := parseCount(b[at:], "bulk length")
		if used == 0 || err != nil {
			return 0, err
		}
		if size < 0 || size > bufferSize {
			return 0, faultf("invalid bulk length")
		}
		from := at + used
		end := from + size
		if len(b) < end+2 {
			return 0, nil
		}
		if b[end] != '\r' || b[end+1] != '\n' {
			return 0, faultf("expected CRLF after %d bytes", size)
		}
		r.args = append(r.args, b[from:end:end])
		at = end + 2
	}
	return at, nil
}

// maxDigits bounds the digits of a length.
const maxDigits = 9

// parseCount parses a line of a type byte and a number, and gives its length: 0 when the line has not
// ended.
func parseCount(b []byte, what string) (number, used int, err error) {
	i, negative := 1, false
	if len(b) > 1 && b[1] == '-' {
		i, negative = 2, true
	}
	first := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' && i-first <= maxDigits {
		number = number*10 + int(b[i]-'0')
		i++
	}
	switch {
	case i == len(b):
		return 0, 0, nil
	case i == first || i-first > maxDigits || b[i] != '\r':
		return 0, 0, faultf("invalid %s", what)
	case i+1 == len(b):
		return 0, 0, nil
	case b[i+1] != '\n':
		return 0, 0, faultf("invalid %s", what)
	case negative:
		number = -number
	}
	return number, i + 2, nil
}

// parseInline parses a line of words.
func (r *reader) parseInline(b []byte) (int, error) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return 0, nil
	}
	line := b[:end]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	for count := 0; ; count++ {
		line = bytes.TrimLeft(line, spaces)
		if len(line) == 0 {
			return end + 1, nil
		}
		if count == maxArguments {
			return 0, faultf("too many words in an inline request: send at most %d", maxArguments)
		}
		var err error
		if line, err = r.parseWord(line); err != nil {
			return 0, err
		}
	}
}

// spaces separate the words of an inline command.
const spaces = " \t\v\f\r\x00"

// parseWord parses the first word of a line, and gives the rest.
func (r *reader) parseWord(line []byte) (rest []byte, err error) {
	plain := bytes.IndexAny(line, spaces+`"'`)
	switch {
	case plain < 0:
		r.args = append(r.args, line)
		return nil, nil
	case line[plain] != '"' && line[plain] != '\'':
		r.args = append(r.args, line[:plain:plain])
		return line[plain:], nil
	}
	word, line := line[:plain], line[plain:]
	for len(line) > 0 && strings.IndexByte(spaces, line[0]) < 0 {
		if c := line[0]; c != '"' && c != '\'' {
			word, line = append(word, c), line[1:]
			continue
		}
		if word, line, err = appendQuoted(word, line); err != nil {
			return nil, err
		}
	}
	r.args = append(r.args, slices.Clip(word))
	return line, nil
}

// appendQuoted appends what stands in quotes at the start of a line. A space or the end must follow. dst may end where line
// begins: a byte is written only after it was read.
func appendQuoted(dst, line []byte) (out, rest []byte, err error) {
	quote := line[0]
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == quote:
			if i+1 < len(line) && strings.IndexByte(spaces, line[i+1]) < 0 {
				return nil, nil, faultf("unbalanced quotes in request")
			}
			return dst, line[i+1:], nil
		case c == '\\' && quote == '"' && i+1 < len(line):
			var used int
			dst, used = appendEscaped(dst, line[i+1:])
			i += used
		case c == '\\' && i+1 < len(line) && line[i+1] == quote:
			dst = append(dst, quote)
			i++
		default:
			dst = append(dst, c)
		}
	}
	return nil, nil, faultf("unbalanced quotes in request")
}

// appendEscaped appends the byte that an escape without its backslash stands for.
func appendEscaped(dst, b []byte) (out []byte, used int) {
	if b[0] == 'x' && len(b) > 2 {
		high, low := digit(b[1]), digit(b[2])
		if high >= 0 && low >= 0 {
			return append(dst, byte(high<<4|low)), 3
		}
	}
	c := b[0]
	if i := strings.IndexByte("nrtba", c); i >= 0 {
		c = "\n\r\t\b\a"[i]
	}
	return append(dst, c), 1
}

// digit gives the value of a hexadecimal digit, or -1.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}

// quoteByte shows a byte of a client.
func quoteByte(c byte) string {
	if c < ' ' || c > '~' {
		return fmt.Sprintf("the byte 0x%02x", c)
	}
	return "'" + string(rune(c)) + "'"
}

// parseInt parses a decimal number.
func parseInt(b []byte) (int64, bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	const most = 18 // digits that fit an int64 in any case
	if len(b) == 0 || len(b) > most {
		return 0, false
	}
	n := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
