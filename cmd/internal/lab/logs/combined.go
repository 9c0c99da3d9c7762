package logs

import (
	"bytes"
	"time"
)

// text parses the lines of one text format. A method returns false for a line of another form.
type text func(r *Reader, line []byte, l *Line) bool

// parseCombined reads the common and the combined format, with attributes after them: name=value or name="value".
//
//	192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /v1/product?id=7 HTTP/2.0" 429 212 "-" "curl/8" begin=1772366400000000 D=341
func parseCombined(r *Reader, line []byte, l *Line) bool {
	open := bytes.IndexByte(line, '[')
	if open < 2 {
		return false
	}
	end := bytes.IndexByte(line[open:], ']')
	space := bytes.IndexByte(line, ' ')
	if end < 0 || space < 0 || space > open {
		return false
	}
	at, unit, ok := r.clocks.readCommon(line[open+1 : open+end])
	if !ok {
		return false
	}
	l.Arrival, l.Resolution = at, unit
	l.Client = readAddress(line[:space])
	rest, ok := bytes.CutPrefix(line[open+end+1:], []byte(` "`))
	if !ok {
		return false
	}
	request, rest, ok := r.quoted(rest)
	if !ok || len(rest) == 0 || rest[0] != ' ' {
		return false
	}
	status, rest := token(rest[1:])
	_, rest = token(rest)
	if l.Status, ok = readStatus(status); !ok {
		return false
	}
	times := &r.times
	if len(rest) > 0 && rest[0] == '"' {
		if rest, ok = r.agents(rest, l); !ok {
			return false
		}
	}
	if !r.attributes(rest, l, times) {
		return false
	}
	times.settle(r, l)
	return r.request(request, l, times)
}

// agents reads the referer and the user agent.
func (r *Reader) agents(rest []byte, l *Line) ([]byte, bool) {
	for _, part := range [...]int{r.refererPart, r.agentPart} {
		if len(rest) == 0 || rest[0] != '"' {
			break
		}
		var value []byte
		var ok bool
		if value, rest, ok = r.quoted(rest[1:]); !ok {
			return nil, false
		}
		if part >= 0 {
			l.Parts[part] = logged(value)
		}
		rest = bytes.TrimLeft(rest, " ")
	}
	return rest, true
}

// logged is a value in clear; - and an empty text are none.
func logged(value []byte) Value {
	if len(value) == 0 || len(value) == 1 && value[0] == '-' {
		return Value{Form: Absent}
	}
	return Value{value, Plain}
}

// token cuts a word from the start of a line.
func token(line []byte) (word, rest []byte) {
	word, rest, _ = bytes.Cut(line, []byte{' '})
	return word, rest
}

// quoted reads up to the closing quote, and undoes \" \\ \xHH and the escapes of C, as servers write them.
func (r *Reader) quoted(text []byte) (value, rest []byte, ok bool) {
	value, rest, ok = bytes.Cut(text, []byte{'"'})
	if ok && bytes.IndexByte(value, '\\') >= 0 {
		return r.escaped(text)
	}
	return value, rest, ok
}

// escaped is quoted for a text with escapes. The value is in the scratch buffer, which one line fills at most to its own length.
func (r *Reader) escaped(text []byte) (value, rest []byte, ok bool) {
	if cap(r.scratch)-len(r.scratch) < len(text) {
		r.scratch = make([]byte, 0, 2*len(text)) // Values of this line in the former buffer stay there.
	}
	from := len(r.scratch)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			return r.scratch[from:len(r.scratch):len(r.scratch)], text[i+1:], true
		case c != '\\' || i+1 == len(text):
		case text[i+1] == 'x' && i+3 < len(text) && hexDigit(text[i+2]) >= 0 && hexDigit(text[i+3]) >= 0:
			c = byte(hexDigit(text[i+2])<<4 | hexDigit(text[i+3]))
			i += 3
		default:
			i++
			c = unescape(text[i])
		}
		r.scratch = append(r.scratch, c)
	}
	return nil, nil, false
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default:
		return c
	}
}

func hexDigit(c byte) int {
	switch {
	case digit(c):
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}

// attributes reads name=value and name="value" to the end of a line. It skips words of another form.
func (r *Reader) attributes(rest []byte, l *Line, times *lineTimes) bool {
	for i := 0; len(rest) > 0; {
		var name, value []byte
		switch end := endOfName(rest); {
		case rest[0] == ' ':
			rest = rest[1:]
			continue
		case rest[0] == '"': // a quoted value without a name
		case end < 0:
			return true
		case rest[end] == ' ':
			rest = rest[end+1:]
			continue
		default:
			name, rest = rest[:end], rest[end+1:]
		}
		ok := true
		if len(rest) > 0 && rest[0] == '"' {
			value, rest, ok = r.quoted(rest[1:])
		} else {
			value, rest = token(rest)
		}
		if !ok {
			return false
		}
		if f := r.fields.find(text2(name), i); f != nil && !r.assign(f, value, l, times) {
			return false
		}
		i++
	}
	return true
}

// endOfName returns the place of the first = or space; -1 is none.
func endOfName(text []byte) int {
	for i, c := range text {
		if c == '=' || c == ' ' {
			return i
		}
	}
	return -1
}

// lineTimes are the times and lengths of one line, before they become its arrival.
type lineTimes struct {
	start, ready, end time.Duration // since 1970, of the first byte, of the end of the head, and of the answer; -1 is unknown
	unit              time.Duration
	head              time.Duration // the time of the head
	length            int           // of the request of nginx with its head; -1 is unknown
	uri               []byte        // of nginx, after its own changes
}

func (t *lineTimes) reset() { *t = lineTimes{start: -1, ready: -1, end: -1, length: -1} }

// settle makes the arrival: the end of the head where the line has it, else the start, else the end without the duration.
func (t *lineTimes) settle(r *Reader, l *Line) {
	if t.ready < 0 && t.start >= 0 && t.head > 0 {
		t.ready = t.start + t.head
	}
	switch {
	case t.ready >= 0:
		l.Arrival, l.Resolution = asInstant(t.ready), t.unit
		if t.start >= 0 && l.Duration >= 0 {
			l.Duration = max(0, l.Duration-(t.ready-t.start))
		}
	case t.start >= 0:
		l.Arrival, l.Resolution = asInstant(t.start), t.unit
	case t.end >= 0:
		l.Arrival, l.Resolution = asInstant(max(0, t.end-max(0, l.Duration))), t.unit
	case r.timeIsEnd && l.Duration > 0:
		l.Arrival = max(0, l.Arrival.Add(-l.Duration))
	}
}
