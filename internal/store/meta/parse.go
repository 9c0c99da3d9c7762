package meta

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
)

// Bounds of a server's answers.
const (
	maxStats   = 1000 // Lines of stats; version 1.6.18 has about 90.
	maxMessage = 200  // Kept bytes of a message.
	readBuffer = 16 << 10
)

// parser reads answers. Every error of a parser ends the connection, because the beginning of the
// next answer is then unknown.
type parser struct {
	r        *bufio.Reader
	maxValue int
}

// answer reads the answer to q into a, and values into t.
func (p *parser) answer(q asked, a *answer, t *call) error {
	line, err := p.line()
	if err != nil {
		return err
	}
	switch q.kind {
	case noop:
		if string(line) != "MN" {
			return unexpected(line)
		}
		return nil
	case stats:
		return p.stats(line, t)
	default:
		if refused(line, q.kind) {
			a.status, a.message = Refused, printable(line)
			t.refused = t.refused || unable(line)
			return nil
		}
		return p.coded(line, q, a, t)
	}
}

// line gives the next line without its end. The line is valid until the next read.
func (p *parser) line() ([]byte, error) {
	line, err := p.r.ReadSlice('\n')
	switch {
	case err == bufio.ErrBufferFull: //nolint:errorlint // because bufio gives it as it is
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, readBuffer)
	case err != nil:
		return nil, err
	case len(line) < 2 || line[len(line)-2] != '\r':
		return nil, unexpected(line)
	}
	return line[:len(line)-2], nil
}

// refused reports whether line says that the server has refused a request of this kind, has read
// all of it, and continues with the next one. After other errors, the server may take a value for
// commands.
func refused(line []byte, kind Kind) bool {
	if bytes.HasPrefix(line, []byte("SERVER_ERROR ")) {
		return true
	}
	arithmetic := kind == Increment || kind == Decrement
	return arithmetic && string(line) == "CLIENT_ERROR cannot increment or decrement non-numeric value"
}

// unable reports whether line says that the server cannot do requests now. A value that is too large says nothing
// about the server. A proxy also answers so in place of a server that it does not reach.
func unable(line []byte) bool {
	return bytes.HasPrefix(line, []byte("SERVER_ERROR ")) && !bytes.Contains(line, []byte("too large"))
}

// coded reads an answer that begins with a code of two letters.
func (p *parser) coded(line []byte, q asked, a *answer, t *call) error {
	if len(line) < 2 || (len(line) > 2 && line[2] != ' ') {
		return unexpected(line)
	}
	flags, size, valued := line[2:], 0, string(line[:2]) == "VA"
	if valued {
		n, rest, ok := leadingNumber(bytes.TrimLeft(flags, " "))
		if !ok || n > math.MaxInt32 || (len(rest) > 0 && rest[0] != ' ') {
			return unexpected(line)
		}
		size, flags = int(n), rest
	}
	status, ok := statusOf(line[:2], q.kind)
	if !ok || !readFlags(flags, q.number, a) {
		return unexpected(line)
	}
	a.status = status
	if !valued {
		return nil
	}
	if q.kind != Get {
		return p.digits(size, a)
	}
	return p.value(size, a, t)
}

// statusOf gives the meaning of a code as the answer to a request of this kind.
func statusOf(code []byte, kind Kind) (Status, bool) {
	switch string(code) {
	case "VA":
		return OK, kind == Get || kind == Increment || kind == Decrement
	case "HD":
		return OK, kind == Set || kind == Add || kind == Delete
	case "EN":
		return NotFound, kind == Get
	case "NF":
		return NotFound, kind != Get && kind != Add
	case "NS":
		return Exists, kind == Add
	case "EX":
		return Exists, kind == Set || kind == Delete
	default:
		return 0, false
	}
}

// readFlags reads the flags of an answer. One of them must be the request's number.
func readFlags(flags []byte, number uint32, a *answer) bool {
	seen := false
	for len(flags) > 0 {
		if flags[0] == ' ' {
			flags = flags[1:]
			continue
		}
		end := bytes.IndexByte(flags, ' ')
		if end < 0 {
			end = len(flags)
		}
		flag, token := flags[0], flags[1:end]
		flags = flags[end:]
		if flag != 'c' && flag != 'O' {
			continue // Flags without use here, such as W, X and Z.
		}
		n, rest, ok := leadingNumber(token)
		if !ok || len(rest) > 0 {
			return false
		}
		if flag == 'c' {
			a.cas = n
		} else {
			seen = n == uint64(number)
		}
	}
	return seen
}

// value reads a value of size bytes and the end of its line.
func (p *parser) value(size int, a *answer, t *call) error {
	from := len(t.arena)
	if size > p.maxValue || from+size > MaxBytes {
		return fmt.Errorf("%w: a value of %d bytes is above MaxValue, or too many at once", ErrProtocol, size)
	}
	t.arena = grown(t.arena, size+2)
	if _, err := io.ReadFull(p.r, t.arena[from:]); err != nil {
		return err
	}
	if string(t.arena[from+size:]) != "\r\n" {
		return fmt.Errorf("%w: a value goes on after its %d bytes", ErrProtocol, size)
	}
	t.arena = t.arena[:from+size]
	a.from, a.to = from, from+size
	return nil
}

// grown gives b with n more bytes at its end. When it has to move b, it adds spare capacity.
func grown(b []byte, n int) []byte {
	if len(b)+n <= cap(b) {
		return b[:len(b)+n]
	}
	larger := make([]byte, len(b)+n, max(2*cap(b), len(b)+n))
	copy(larger, b)
	return larger
}

// digits reads the new number after an Increment or a Decrement.
func (p *parser) digits(size int, a *answer) error {
	line, err := p.line()
	if err != nil {
		return err
	}
	n, rest, ok := leadingNumber(line)
	if !ok || len(rest) > 0 || len(line) != size {
		return unexpected(line)
	}
	a.number = n
	return nil
}

// stats reads the lines of stats, beginning with line.
func (p *parser) stats(line []byte, t *call) error {
	t.stats = make(map[string]string, 100)
	for range maxStats {
		if string(line) == "END" {
			return nil
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(string(line), "STAT "), " ")
		if !ok || !bytes.HasPrefix(line, []byte("STAT ")) {
			return unexpected(line)
		}
		t.stats[name] = value
		var err error
		if line, err = p.line(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: more than %d statistics", ErrProtocol, maxStats)
}

// leadingNumber reads the decimal number at the beginning of b.
func leadingNumber(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		digit := uint64(b[i] - '0')
		if n > (math.MaxUint64-digit)/10 {
			return 0, nil, false
		}
		n = 10*n + digit
	}
	return n, b[i:], i > 0
}

func unexpected(line []byte) error {
	return fmt.Errorf("%w: %q", ErrProtocol, printable(line))
}

// printable gives a server's message, shortened and without characters that could end a log line.
func printable(line []byte) string {
	clean := func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}
	return strings.Map(clean, string(line[:min(len(line), maxMessage)]))
}
