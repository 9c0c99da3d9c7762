package http1

import (
	"bytes"
	"strconv"
	"strings"
	"sync/atomic"
)

// Framing follows the requests on an HTTP/1 connection in the bytes that are read. It finds
// what net/http repairs before a handler sees the request, and does not report: header and
// trailer lines that continue the line before (obs-fold, RFC 9112, section 5.2), and requests with
// two framings. These have a Transfer-Encoding beside a Content-Length or in HTTP/1.0, and
// another server may find their end elsewhere (sections 6.1 and 6.3).
//
// Framing keeps at most 64 bytes of the current line. Where it cannot tell how a message
// ends, net/http cannot either, and closes the connection. The zero Framing is ready for
// a new connection. One goroutine at a time calls Scan; the other methods are safe for concurrent use.
type Framing struct {
	malformed atomic.Uint64 // number of the first malformed request; 0 means none
	handled   atomic.Uint64 // number of requests that have reached a handler

	state    framingState
	requests uint64 // number of requests whose request line has ended

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

// Scan processes the next bytes of the connection.
func (f *Framing) Scan(p []byte) {
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

func (f *Framing) bodyEnded() {
	if f.state == framingChunk {
		f.state = framingChunkSize
	} else {
		f.state = framingRequest
	}
}

// keep processes a piece of the current line.
func (f *Framing) keep(piece []byte) {
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
func (f *Framing) keepEnd(piece []byte) {
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
func (f *Framing) refuse() { f.malformed.CompareAndSwap(0, f.requests) }

// Enter notes that a request has reached its handler.
func (f *Framing) Enter() { f.handled.Add(1) }

// Malformed reports whether the request that entered last, or one before it, is malformed. After the
// end of the body the result also covers the trailer.
func (f *Framing) Malformed() bool {
	malformed := f.malformed.Load()
	return malformed != 0 && f.handled.Load() >= malformed
}

func (f *Framing) lineEnded() {
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
func (f *Framing) begin(end string) {
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
func (f *Framing) field(text string) {
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
func (f *Framing) headerEnded() {
	if f.coded > 0 && (f.old || f.sized) {
		f.refuse()
	}
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
func (f *Framing) chunk(text string) {
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

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
