package proxy

import (
	"bytes"
	"strconv"
	"strings"
)

// framing follows the messages of a connection of HTTP/1 in the bytes that are read
// from it, and finds lines of a header or trailer that continue the line before (obs-fold,
// RFC 9112, section 5.2). The server joins such lines before a handler sees them, and gives no
// sign of it.
//
// framing keeps some bytes of one line and no more, whatever is sent. Where it cannot
// tell how a message ends, the server cannot either, and closes the connection. The
// zero framing is at the begin of a connection.
type framing struct {
	state    framingState
	requests uint64 // whose first line has ended
	folded   uint64 // the first of them that is malformed; 0 is none

	line   [64]byte // of the line that is being read: without blanks, in lower case
	kept   int      // bytes of it
	cut    bool     // it had more of them
	length int      // of the line as sent, "\n" left out; 2 is "2 or more"
	last   byte

	old     bool // HTTP/1.0, which has no chunks
	coded   int  // lines of Transfer-Encoding
	chunked bool // what they say
	size    uint64
	sized   bool   // there is a Content-Length, of size
	left    uint64 // of the body, or of the chunk with its line end
}

// framingState says what the next byte belongs to.
type framingState uint8

const (
	framingRequest framingState = iota
	framingHeader
	framingBody
	framingChunkSize
	framingChunk
	framingTrailer
	framingUnknown // another protocol, or what the server refuses
)

// scan takes what was read next.
func (f *framing) scan(p []byte) {
	for len(p) > 0 {
		switch f.state {
		case framingUnknown:
			return
		case framingBody, framingChunk:
			n := min(f.left, uint64(len(p)))
			p, f.left = p[n:], f.left-n
			if f.left == 0 {
				f.bodyEnded()
			}
		default:
			end := bytes.IndexByte(p, '\n')
			if end < 0 {
				f.keep(p)
				return
			}
			f.keep(p[:end])
			p = p[end+1:]
			f.lineEnded()
			f.kept, f.length, f.cut = 0, 0, false
		}
	}
}

func (f *framing) bodyEnded() {
	if f.state == framingChunk {
		f.state = framingChunkSize
	} else {
		f.state = framingRequest
	}
}

// keep looks at a piece of a line.
func (f *framing) keep(piece []byte) {
	if len(piece) == 0 {
		return
	}
	if f.length == 0 && (f.state == framingHeader || f.state == framingTrailer) && isBlank(piece[0]) {
		f.refuse()
	}
	f.length = min(2, f.length+len(piece))
	if f.state == framingRequest {
		f.keepEnd(piece)
		return
	}
	f.last = piece[len(piece)-1]
	for i, c := range piece {
		if f.kept == len(f.line) {
			f.cut = f.cut || len(bytes.Trim(piece[i:], " \t\r")) > 0
			return
		}
		if isBlank(c) {
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		f.line[f.kept] = c
		f.kept++
	}
}

// keepEnd keeps the end of a first line, which has the version.
func (f *framing) keepEnd(piece []byte) {
	const version = len("HTTP/1.0\r")
	f.last = piece[len(piece)-1]
	if len(piece) > version {
		piece = piece[len(piece)-version:]
	}
	if over := f.kept + len(piece) - version; over > 0 {
		f.kept = copy(f.line[:], f.line[over:f.kept])
	}
	f.kept += copy(f.line[f.kept:], piece)
}

// refuse notes that the request whose header is being read is malformed.
func (f *framing) refuse() {
	if f.folded == 0 {
		f.folded = f.requests
	}
}

func (f *framing) lineEnded() {
	empty := f.length == 0 || f.length == 1 && f.last == '\r'
	text := strings.TrimSuffix(string(f.line[:f.kept]), "\r")
	switch f.state {
	case framingRequest:
		if !empty {
			f.begin(text)
		}
	case framingHeader:
		if empty {
			f.headerEnded()
		} else {
			f.field(text)
		}
	case framingChunkSize:
		f.chunk(text)
	case framingTrailer:
		if empty {
			f.state = framingRequest
		}
	default:
	}
}

// begin begins a request with the end of its first line.
func (f *framing) begin(end string) {
	if strings.HasSuffix(end, "HTTP/2.0") {
		f.state = framingUnknown // The preface of HTTP/2. A server of HTTP/1 closes behind it.
		return
	}
	f.requests++
	f.state, f.old = framingHeader, strings.HasSuffix(end, "HTTP/1.0")
	f.coded, f.chunked, f.sized, f.size = 0, false, false, 0
}

// field reads the fields that say how long a body is. A value that is longer than any
// that means something is refused: it would hide where the body ends.
func (f *framing) field(text string) {
	if value, found := strings.CutPrefix(text, "transfer-encoding:"); found {
		f.coded++
		f.chunked = value == "chunked"
		if f.cut {
			f.refuse()
		}
	}
	value, found := strings.CutPrefix(text, "content-length:")
	if !found {
		return
	}
	size, err := strconv.ParseUint(value, 10, 63)
	if err != nil || f.cut || f.sized && size != f.size {
		f.refuse()
	}
	f.size, f.sized = size, true
}

// headerEnded goes by the rules of net/http: chunks go before a length, HTTP/1.0 has
// none, and a body that neither says is empty.
func (f *framing) headerEnded() {
	switch {
	case f.coded > 0 && !f.old && f.coded == 1 && f.chunked:
		f.state = framingChunkSize
	case f.coded > 0 && !f.old:
		f.state = framingUnknown // It is answered with 501.
	case f.size > 0:
		f.state, f.left = framingBody, f.size
	default:
		f.state = framingRequest
	}
}

// chunk reads the line before a chunk.
func (f *framing) chunk(text string) {
	const most = 1 << 62 // More would not leave room for the line end.
	digits, _, _ := strings.Cut(text, ";")
	size, err := strconv.ParseUint(digits, 16, 64)
	switch {
	case err != nil || size > most:
		f.state = framingUnknown
	case size == 0:
		f.state = framingTrailer
	default:
		f.state, f.left = framingChunk, size+uint64(len("\r\n"))
	}
}
