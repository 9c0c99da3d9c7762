package proxy

import (
	"bytes"
	"strconv"
	"strings"
)

// framing follows the messages on an HTTP/1 connection in the bytes that are read. It
// finds header and trailer lines that continue the line before (obs-fold, RFC 9112,
// section 5.2). net/http joins such lines before a handler sees them, and does not
// report them.
//
// framing keeps at most 64 bytes of the current line. Where it cannot tell how a message
// ends, net/http cannot either, and closes the connection. The zero framing is ready for
// a new connection.
type framing struct {
	state    framingState
	requests uint64 // number of requests whose request line has ended
	folded   uint64 // number of the first malformed request; 0 means none

	line   [64]byte // start of the current line, without blanks and in lower case
	kept   int      // number of bytes in line
	cut    bool     // the line is longer than line can keep
	named  bool     // a colon has ended the name of the field
	length int      // length of the line as sent, without "\n"; 2 means 2 or more
	last   byte

	old     bool // HTTP/1.0, which has no chunks
	coded   int  // number of Transfer-Encoding lines
	chunked bool // the last Transfer-Encoding is "chunked"
	size    uint64
	sized   bool   // the request has a Content-Length of size
	left    uint64 // bytes left in the body, or in the chunk with its line end
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
	framingUnknown // another protocol, or a message that the server refuses
)

// scan processes the next bytes of the connection.
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
			f.kept, f.length, f.cut, f.named = 0, 0, false, false
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

// keep processes a piece of the current line.
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
			if !f.named && f.state == framingHeader {
				f.refuse() // net/http takes "Content-Length :" for another field, and its server refuses the request.
			}
			continue
		}
		f.named = f.named || c == ':'
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		f.line[f.kept] = c
		f.kept++
	}
}

// keepEnd keeps the end of a request line, which has the HTTP version.
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

// refuse marks the current request as malformed, if it is the first.
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

// begin starts a request. end is the end of its request line.
func (f *framing) begin(end string) {
	if strings.HasSuffix(end, "HTTP/2.0") {
		f.state = framingUnknown // An HTTP/1 server closes the connection after the HTTP/2 preface.
		return
	}
	f.requests++
	f.state, f.old = framingHeader, strings.HasSuffix(end, "HTTP/1.0")
	f.coded, f.chunked, f.sized, f.size = 0, false, false, 0
}

// field reads the fields that set the length of a body. A value longer than any valid
// value is refused, because the framing could not tell where the body ends.
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

// headerEnded follows net/http: chunks take precedence over a length, HTTP/1.0 has no
// chunks, and a request with neither has an empty body.
func (f *framing) headerEnded() {
	switch {
	case f.coded > 0 && !f.old && f.coded == 1 && f.chunked:
		f.state = framingChunkSize
	case f.coded > 0 && !f.old:
		f.state = framingUnknown // The server answers with 501.
	case f.size > 0:
		f.state, f.left = framingBody, f.size
	default:
		f.state = framingRequest
	}
}

// chunk reads the line before a chunk.
func (f *framing) chunk(text string) {
	const most = 1 << 62 // A greater size plus the line end could overflow.
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
