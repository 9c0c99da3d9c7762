package server

import (
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/headgate/headgate/cmd/internal/http1"
)

const (
	// outBytes is the size of the buffer for an answer. An answer that fits is written at once.
	outBytes = 16 << 10
	// mostHeld is how much of a body of unknown length is held, because the length becomes
	// known if the handler returns. It is the bound of net/http.
	mostHeld = 2 << 10
)

// writer is the http.ResponseWriter of one request.
type writer struct {
	trailers    trailers
	conn        *conn
	transaction *transaction
	header      http.Header

	status   int   // 0 before WriteHeader
	length   int64 // of the body, as the handler declared it; unknown otherwise
	written  int64 // bytes of the body so far
	toHead   bool  // the request has the method HEAD
	mayReuse bool  // nothing so far asks to close the connection
	duplex   bool  // the handler may write before it has read the body
	begun    bool  // the header is in out, or sent
	chunked  bool
	err      error // of the first failed write

	out      []byte     // bytes to send; nil without any
	held     []byte     // body before the header is complete
	declared string     // value of the Content-Length field
	options  string     // value of the handler's Connection field
	fields   http1.List // of header
}

// unknown is the length of a body that the handler did not declare.
const unknown = -1

func (w *writer) begin(c *conn, t *transaction, head *http1.Head) {
	*w = writer{
		conn: c, transaction: t, header: w.header, length: unknown, toHead: head.Method == http.MethodHead, mayReuse: !head.Close,
		held: w.held[:0], fields: w.fields,
	}
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	switch {
	case w.status != 0:
		return
	case status >= http.StatusOK:
		w.status = status
		_, dated := w.header["Date"] // A handler that wants no Date sets it to nil.
		w.fields.Load(w.header)
		w.fields.DeleteFunc(isInvalid)
		w.compose(&w.fields, dated)
	case status != http.StatusSwitchingProtocols: // A request in the subset asks for no upgrade.
		w.grow()
		w.out = appendStatus(w.out, status)
		w.fields.Load(w.header)
		w.fields.DeleteFunc(isInvalid)
		w.appendFields(&w.fields, func(name string) bool { return isLengthField(name) || strings.HasPrefix(name, http.TrailerPrefix) })
		w.out = append(w.out, "\r\n"...)
		_ = w.send() // Later writes return the error.
	}
}

// FieldsWriter is a ResponseWriter that writes the header of a response from a List.
type FieldsWriter interface {
	http.ResponseWriter

	// WriteFields does what WriteHeader does for a final status, with fields in place of Header. It does not change or
	// keep fields, whose names must be valid.
	WriteFields(status int, fields *http1.List)
}

// WriteFields implements FieldsWriter.
func (w *writer) WriteFields(status int, fields *http1.List) {
	if w.status == 0 {
		w.status = status
		w.compose(fields, fields.Has("Date"))
	}
}

// isInvalid reports whether a handler's name is no name of a field.
func isInvalid(name string) bool {
	return !httpguts.ValidHeaderFieldName(name) && !strings.HasPrefix(name, http.TrailerPrefix)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, nil
	case !allowsBody(w.status):
		return 0, http.ErrBodyNotAllowed
	}
	if w.written += int64(len(p)); w.length != unknown && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if !w.begun && w.length == unknown && len(w.held)+len(p) <= mostHeld {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	w.complete(false)
	if w.toHead {
		return len(p), w.err
	}
	return w.body(p)
}

// body writes a piece of the body.
func (w *writer) body(p []byte) (int, error) {
	if w.chunked {
		return w.chunk(p)
	}
	return w.put(p)
}

// put adds bytes to the buffer, or writes them if there are too many.
func (w *writer) put(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.grow()
	if len(w.out)+len(p) <= cap(w.out) {
		w.out = append(w.out, p...)
		return len(p), nil
	}
	fill := cap(w.out) - len(w.out)
	w.out = append(w.out, p[:fill]...)
	if err := w.send(); err != nil {
		return 0, err
	}
	n, err := w.conn.write(p[fill:])
	return fill + n, w.failed(err)
}

// grow takes a buffer for the answer.
func (w *writer) grow() {
	if w.out == nil {
		w.out = w.conn.server.takeOut()
	}
}

// send writes the buffer to the connection.
func (w *writer) send() error {
	if w.err != nil || len(w.out) == 0 {
		return w.err
	}
	_, err := w.conn.write(w.out)
	w.out = w.out[:0]
	return w.failed(err)
}

// failed notes a failed write. The client does not read any more, so the context ends.
func (w *writer) failed(err error) error {
	if err != nil && w.err == nil {
		w.err = err
		w.transaction.ctx.end()
	}
	return err
}

// FlushError sends what was written so far.
func (w *writer) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.complete(false)
	return w.send()
}

// SetReadDeadline bounds the reads of the request's body. It may be called from the goroutine
// that reads the body.
func (w *writer) SetReadDeadline(t time.Time) error {
	w.conn.deadlineMoved.Store(true)
	return w.conn.Conn.SetReadDeadline(t)
}

// SetWriteDeadline bounds the writes of the answer.
func (w *writer) SetWriteDeadline(t time.Time) error { return w.conn.Conn.SetWriteDeadline(t) }

// EnableFullDuplex lets the handler write the answer before it has read the body.
func (w *writer) EnableFullDuplex() error {
	w.duplex = true
	return nil
}

// finish ends the answer, after the handler has returned. It reports whether the connection
// may serve another request.
func (w *writer) finish() (reuse bool) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.complete(true)
	if w.chunked {
		_, _ = w.put(w.trailers.end(w.header)) // send returns the error.
	}
	if b := &w.transaction.body; !w.mayReuse && w.err == nil && len(w.out) > 0 && (b.conn == nil || b.ended.Load()) {
		_, err := w.conn.writeLast(w.out) // Nothing is read any more, so that close follows at once.
		w.out = w.out[:0]
		_ = w.failed(err)
	}
	_ = w.send()
	if !w.toHead && w.length != unknown && allowsBody(w.status) && w.written != w.length {
		w.mayReuse = false // The client waits for the rest.
	}
	return w.mayReuse && w.err == nil
}

// takeOut returns an empty buffer for an answer.
func (s *Server) takeOut() []byte {
	if b, ok := s.outs.Get().(*[outBytes]byte); ok {
		return b[:0]
	}
	return make([]byte, 0, outBytes)
}

// free returns the buffer.
func (w *writer) free() {
	if w.out != nil {
		w.conn.server.outs.Put((*[outBytes]byte)(w.out[:outBytes]))
		w.out = nil
	}
	if cap(w.held) > mostHeld {
		w.held = nil
	}
}

// allowsBody reports whether an answer of the status may have a body.
func allowsBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

func isLengthField(name string) bool { return name == "Content-Length" || name == "Transfer-Encoding" }

var _ FieldsWriter = (*writer)(nil)
