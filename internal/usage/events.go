package usage

import "bytes"

// events reads server-sent events, as the HTML standard defines them: lines end with LF, CR or CR LF, and an empty line ends an event.
type events struct {
	begun  bool // the first bytes, which may be a byte order mark, are read
	inLine line
	afterR bool // the last byte was CR: LF belongs to it
	data   bool // the event has data
	done   bool // an event was [DONE]
	sign   int8 // bytes of [DONE] that the data has so far; -1 for other data
	length int8 // of head
	head   [8]byte
	number int // events with data
}

// line is the part of a line that is read.
type line uint8

const (
	inHead    line = iota // the name of the field
	inData                // the value of data
	inIgnored             // the value of another field, or a comment
)

const doneSign = "[DONE]"

// write reads bytes, and returns the position behind the last event that is complete; -1 for none.
func (e *events) write(d *document, v *values, b []byte) (boundary int) {
	boundary = -1
	for i := 0; i < len(b); {
		if e.afterR {
			e.afterR = false
			if b[i] == '\n' {
				if boundary == i {
					boundary++
				}
				i++
				continue
			}
		}
		if e.inLine == inHead {
			empty := e.header(d, v, b[i])
			if i++; empty {
				e.dispatch(d, v)
				boundary = i
			}
			continue
		}
		rest := b[i:]
		end, found := lineEnd(rest)
		if e.inLine == inData {
			e.feed(d, v, rest[:end])
		}
		if i += end; found {
			e.afterR = b[i] == '\r'
			e.inLine, e.length = inHead, 0
			i++
		}
	}
	return boundary
}

// lineEnd returns the position of the next CR or LF; len(b) without one.
func lineEnd(b []byte) (end int, found bool) {
	end = bytes.IndexByte(b, '\n')
	if end >= 0 {
		b, found = b[:end], true
	}
	if r := bytes.IndexByte(b, '\r'); r >= 0 {
		return r, true
	}
	return len(b), found
}

// header reads a byte of the name of a field. It reports an empty line.
func (e *events) header(d *document, v *values, c byte) (empty bool) {
	switch {
	case c == '\n' || c == '\r':
		e.afterR = c == '\r'
		if empty = e.length == 0; !empty {
			e.field(d, v) // A line without a colon has an empty value.
		}
		e.inLine, e.length = inHead, 0
	case c == ':':
		e.field(d, v)
	case int(e.length) < len(e.head):
		e.head[e.length] = c
		e.length++
		if !e.begun && e.length == 3 {
			e.begun = true
			if string(e.head[:3]) == "\xef\xbb\xbf" {
				e.length = 0
			}
		}
	}
	return empty
}

// field begins the value of the field whose name is read.
func (e *events) field(d *document, v *values) {
	e.begun = true
	if e.inLine = inIgnored; string(e.head[:e.length]) == "data" {
		e.inLine = inData
		if e.data {
			d.write(v, []byte{'\n'}) // Several lines of data are one value, with LF between them.
		} else {
			e.data, e.sign = true, 0
		}
	}
	e.length = 0
}

// feed reads a part of the data.
func (e *events) feed(d *document, v *values, b []byte) {
	for i := 0; i < len(b) && e.sign >= 0; i++ {
		switch c := b[i]; {
		case c == ' ' && e.sign == 0:
		case int(e.sign) < len(doneSign) && c == doneSign[e.sign]:
			e.sign++
		default:
			e.sign = -1
		}
	}
	d.write(v, b)
}

// dispatch ends an event.
func (e *events) dispatch(d *document, v *values) {
	if e.data {
		e.number++
		if int(e.sign) == len(doneSign) {
			e.done = true
			e.number--
		}
	}
	e.data = false
	d.reset(v)
}
