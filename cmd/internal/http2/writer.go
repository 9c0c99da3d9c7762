package http2

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	wire "golang.org/x/net/http2"
)

const (
	// mostHeld is how much of a body is held until a flush. It is the bound of net/http.
	mostHeld = 4 << 10
	// unknown is the length of a body that the handler did not declare.
	unknown = -1
)

// writer is the http.ResponseWriter of a stream.
type writer struct {
	stream *stream
	header http.Header

	status   int   // 0 before WriteHeader
	length   int64 // that the handler has declared, or unknown
	written  int64
	toHead   bool // the request has the method HEAD
	sent     bool // the header is queued
	block    []byte
	held     []byte
	names    []string // of the header, for sorting
	trailers []string // that the header announces
}

func (w *writer) begin(st *stream) {
	w.stream, w.length = st, unknown
}

// emptied returns what the next stream can use.
func (w *writer) emptied() writer {
	kept := writer{header: emptied(w.header)}
	if cap(w.names) <= mostFields {
		kept.names = w.names[:0]
	}
	if cap(w.block) <= mostKept {
		kept.block = w.block[:0]
	}
	kept.held = w.held[:0]
	return kept
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Later changes of the header have no effect.
func (w *writer) WriteHeader(status int) {
	switch {
	case w.status != 0:
	case status >= http.StatusOK:
		w.status = status
		w.compose()
	case status != http.StatusSwitchingProtocols:
		w.inform(status)
	}
}

// inform sends an informational response.
func (w *writer) inform(status int) {
	st := w.stream
	c := st.conn
	block := w.appendFields(appendStatus(nil, status))
	c.mu.Lock()
	defer c.unlock()
	if st.room() == nil {
		c.queueHeader(st.id, block, false)
		c.sendPart()
	}
}

// compose encodes the header, but not the fields that depend on the body.
func (w *writer) compose() {
	if lines := w.header["Content-Length"]; len(lines) > 0 {
		if n, err := strconv.ParseInt(lines[0], 10, 64); err == nil && n >= 0 {
			w.length = n
		}
	}
	for _, line := range w.header["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			w.announce(http.CanonicalHeaderKey(strings.Trim(name, " \t")))
		}
	}
	w.block = w.appendFields(appendStatus(w.block[:0], w.status))
	if w.length != unknown {
		w.block = appendField(w.block, "Content-Length", strconv.FormatInt(w.length, 10))
	}
	if _, found := w.header["Date"]; !found {
		w.block = appendField(w.block, "Date", w.stream.conn.server.dates.At(time.Now()))
	}
	if lines := w.header["Connection"]; len(lines) > 0 && lines[0] == "close" {
		c := w.stream.conn
		c.mu.Lock()
		defer c.unlock()
		c.goAway() // The client opens no more streams, and the others go on.
	}
}

// announce notes the name of a trailer.
func (w *writer) announce(name string) {
	if httpguts.ValidTrailerHeader(name) && !slices.Contains(w.trailers, name) {
		w.trailers = append(w.trailers, name)
	}
}

// appendFields encodes the fields of the handler, sorted by name, except those of the body's length and of the connection.
func (w *writer) appendFields(b []byte) []byte {
	w.names = w.names[:0]
	for name := range w.header {
		if name != "Content-Length" && name != "Connection" && name != "Transfer-Encoding" {
			w.names = append(w.names, name)
		}
	}
	slices.Sort(w.names)
	for _, name := range w.names {
		b = appendValues(b, name, w.header[name])
	}
	clear(w.names)
	return b
}

// appendValues encodes the values of a field. Invalid names and values are left out.
func appendValues(b []byte, name string, values []string) []byte {
	if _, known := encodedTable[name]; !known && !httpguts.ValidHeaderFieldName(name) {
		return b
	}
	for _, value := range values {
		if httpguts.ValidHeaderFieldValue(value) {
			b = appendField(b, name, value)
		}
	}
	return b
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !allowsBody(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if w.written += int64(len(p)); w.length != unknown && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if w.toHead {
		return len(p), nil
	}
	if len(w.held)+len(p) <= mostHeld {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	c := w.stream.conn
	c.mu.Lock()
	defer c.unlock()
	if err := w.push(p); err != nil {
		return 0, err
	}
	if w.written != w.length {
		c.kick() // The handler may pause. At the end of a declared length it returns, which sends the rest.
	}
	return len(p), nil
}

// push queues the header, what is held, and p. The caller holds mu.
func (w *writer) push(p []byte) error {
	st := w.stream
	if !w.sent {
		if err := w.sendHeader(false); err != nil {
			return err
		}
	}
	for _, part := range [...][]byte{w.held, p} {
		if len(part) == 0 {
			continue
		}
		if err := st.data(part, false); err != nil {
			return err
		}
	}
	w.held = w.held[:0]
	return nil
}

// sendHeader queues the header. The caller holds mu.
func (w *writer) sendHeader(end bool) error {
	st := w.stream
	if err := st.room(); err != nil {
		return err
	}
	w.sent = true
	st.conn.queueHeader(st.id, w.block, end)
	return nil
}

// FlushError sends what was written so far.
func (w *writer) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	c := w.stream.conn
	c.mu.Lock()
	defer c.unlock()
	if err := w.push(nil); err != nil {
		return err
	}
	if w.stream.closed {
		return w.stream.err
	}
	c.sendPart()
	return nil
}

// end queues the rest of the response. The caller holds mu.
func (w *writer) end() error {
	st := w.stream
	if w.status == 0 {
		st.conn.unlock()
		w.WriteHeader(http.StatusOK)
		st.conn.mu.Lock()
	}
	w.promote()
	trailers := w.hasTrailers()
	if !w.sent {
		if w.length == unknown && allowsBody(w.status) && w.written <= mostHeld && (w.written > 0 || !w.toHead) {
			w.block = appendField(w.block, "Content-Length", strconv.FormatInt(w.written, 10))
		}
		end := len(w.held) == 0 && !trailers
		if err := w.sendHeader(end); err != nil {
			return err
		}
		if end {
			st.complete()
			return nil
		}
	}
	if !trailers || len(w.held) > 0 {
		if err := st.data(w.held, !trailers); err != nil {
			return err
		}
	}
	if trailers {
		if err := st.room(); err != nil {
			return err
		}
		block := make([]byte, 0, 128)
		for _, name := range w.trailers {
			block = appendValues(block, name, w.header[name])
		}
		st.conn.queueHeader(st.id, block, true)
	}
	st.complete()
	return nil
}

// promote announces the trailers that the header did not announce, which the handler names with http.TrailerPrefix.
func (w *writer) promote() {
	for name, values := range w.header {
		if plain, found := strings.CutPrefix(name, http.TrailerPrefix); found {
			plain = http.CanonicalHeaderKey(plain)
			w.announce(plain)
			w.header[plain] = values
		}
	}
}

// hasTrailers reports whether the handler has set a trailer.
func (w *writer) hasTrailers() bool {
	return slices.ContainsFunc(w.trailers, func(name string) bool { _, found := w.header[name]; return found })
}

// SetReadDeadline bounds the reads of the request's body.
func (w *writer) SetReadDeadline(t time.Time) error {
	if b := w.stream.body; b != nil {
		b.setDeadline(t)
	}
	return nil
}

// SetWriteDeadline bounds the writes of the response. A write that takes longer resets the stream.
func (w *writer) SetWriteDeadline(t time.Time) error {
	st := w.stream
	c := st.conn
	c.mu.Lock()
	defer c.unlock()
	if st.deadline = t; !t.IsZero() && !time.Now().Before(t) {
		_ = st.expired()
		c.kick()
		return nil
	}
	st.wake.Broadcast()
	return nil
}

// EnableFullDuplex does nothing: a handler may always write before it has read the body.
func (w *writer) EnableFullDuplex() error { return nil }

// AfterClose calls a function when the last frame was written or the stream has ended otherwise, but not before the handler has returned.
func (w *writer) AfterClose(f func()) { w.stream.onClose = f }

// expired resets a stream whose write has taken too long. The caller holds mu.
func (st *stream) expired() error {
	if !st.closed {
		st.conn.reset(st.id, wire.ErrCodeInternal, fmt.Errorf("http2: writing the response: %w", os.ErrDeadlineExceeded))
	}
	return st.err
}

// room waits until frames may be queued. The caller holds mu.
func (st *stream) room() error {
	c := st.conn
	for !st.closed && len(c.queue.out) >= mostQueued {
		if !c.queue.sending && !c.queue.kicked {
			c.sendPart()
			continue
		}
		if st.wait(false) != nil {
			return st.expired()
		}
	}
	if st.closed {
		return st.err
	}
	return nil
}

// data queues a piece of the body. The caller holds mu.
func (st *stream) data(p []byte, end bool) error {
	c := st.conn
	for {
		if err := st.room(); err != nil {
			return err
		}
		n := min(len(p), maxFrame, mostQueued-len(c.queue.out), max(int(min(st.sendWindow, c.sendWindow)), 0))
		if n == 0 && len(p) > 0 {
			if c.sendPart(); st.closed || st.sendWindow > 0 && c.sendWindow > 0 {
				continue
			}
			if st.wait(true) != nil {
				return st.expired()
			}
			continue
		}
		last := n == len(p)
		flags := wire.Flags(0)
		if last && end {
			flags = wire.FlagDataEndStream
		}
		st.sendWindow -= int32(n)
		c.sendWindow -= int32(n)
		c.frame(n, wire.FrameData, flags, st.id)
		c.queue.out = append(c.queue.out, p[:n]...)
		if p = p[n:]; last {
			return nil
		}
	}
}

// allowsBody reports whether a response of the status may have a body.
func allowsBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}
