package usage

import "bytes"

// lineState says where in a line a scan is.
type lineState uint8

const (
	atName lineState = iota // the name of the field is read
	atData                  // the value of a data field
	atRest                  // the value of another field, or a comment
)

// lastData is the data with which some services end a stream.
const lastData = "[DONE]"

// eventLines scans the data of server-sent events. Lines end with LF, CRLF or CR.
type eventLines struct {
	count int // events with data other than [DONE]
	state lineState
	n     int8 // bytes of name
	match int8 // bytes of [DONE] that the data of the event has so far; -1 for other data
	cr    bool // the last line ended with CR: an LF that follows belongs to its end
	empty bool // that line was empty: an event ended
	begun bool // bytes of the stream were seen behind a byte order mark
	data  bool // the event has data
	done  bool
	// broken is that of the document before the event: [DONE] is no JSON, and no fault.
	broken bool
	name   [6]byte
}

// write scans a piece, and returns the offset behind its last complete event; -1 for none.
func (e *eventLines) write(b []byte, d *document) (boundary int) {
	boundary = -1
	feed := -1 // the next LF at or behind i, or the end: a stream of CRs must not search for it again in each line
	for i := 0; i < len(b); {
		if e.cr {
			e.cr = false
			if b[i] == '\n' {
				if i++; e.empty {
					boundary = i
				}
				continue
			}
		}
		if e.state == atName {
			if e.head(b[i], d) {
				boundary = i + 1
			}
			i++
			continue
		}
		if feed < i {
			if feed = bytes.IndexByte(b[i:], '\n'); feed < 0 {
				feed = len(b) - i
			}
			feed += i
		}
		i += e.rest(b[i:], feed-i, d)
	}
	return boundary
}

// head reads one byte of a line up to its colon, and reports whether the byte ended an event.
func (e *eventLines) head(c byte, d *document) (ended bool) {
	switch c {
	case '\n', '\r':
		e.cr = c == '\r'
		ended = e.n == 0
		e.empty = ended
		if ended {
			e.dispatch(d)
		}
		e.n, e.begun = 0, true
	case ':':
		e.state = atRest
		if e.n == 4 && string(e.name[:4]) == "data" {
			e.beginData(d)
		}
		e.n, e.begun = 0, true
	default:
		if int(e.n) == len(e.name) {
			e.state, e.begun = atRest, true
			return false
		}
		e.name[e.n] = c
		e.n++
		if !e.begun && e.n == 3 && string(e.name[:3]) == "\xef\xbb\xbf" {
			e.n, e.begun = 0, true
		}
	}
	return ended
}

// beginData begins a line of data: lines of one event are joined by a line end.
func (e *eventLines) beginData(d *document) {
	e.state = atData
	if e.data {
		d.write([]byte{'\n'})
		e.match = -1
	} else {
		e.match, e.broken = 0, d.broken
	}
	e.data = true
}

// rest reads the rest of a line, and returns the length of what it read. end is the offset of the next LF, or the length of b.
func (e *eventLines) rest(b []byte, end int, d *document) int {
	line := b[:end]
	if r := bytes.IndexByte(line, '\r'); r >= 0 {
		line, end, e.cr, e.empty = b[:r], r, true, false
	}
	if e.state == atData {
		e.compare(line)
		d.write(line)
	}
	if end == len(b) {
		return end
	}
	e.state, e.n = atName, 0
	return end + 1
}

// compare compares data with [DONE].
func (e *eventLines) compare(line []byte) {
	for _, c := range line {
		switch {
		case e.match < 0 || int(e.match) == len(lastData):
			return
		case c == ' ' && e.match == 0:
		case c != lastData[e.match]:
			e.match = -1
		default:
			e.match++
		}
	}
	e.done = e.done || int(e.match) == len(lastData)
}

// dispatch ends an event.
func (e *eventLines) dispatch(d *document) {
	if !e.data {
		return
	}
	e.data = false
	d.reset()
	if int(e.match) == len(lastData) {
		d.broken = e.broken
	} else {
		e.count++
	}
	e.match = -1
}

// writeLines scans lines of JSON. A line that is cut does not spoil the next.
func (s *Scanner) writeLines(b []byte) {
	for i := 0; i < len(b); {
		end := bytes.IndexByte(b[i:], '\n')
		if end < 0 {
			s.document.write(b[i:])
			return
		}
		s.document.write(b[i : i+end])
		s.document.reset()
		i += end + 1
		s.boundary = i
	}
}
