package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// compose writes the status line and the fields into the buffer, but not
// those that depend on the body. Later changes of the fields have no effect. dated says that no Date is added.
func (w *writer) compose(fields *http1.List, dated bool) {
	w.length = unknown
	if text := fields.Get("Content-Length"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			w.length, w.declared = n, text
		}
	}
	w.options = fields.Get("Connection")
	w.trailers.announce(fields.Lines("Trailer"))
	w.grow()
	w.out = appendStatus(w.out, w.status)
	w.appendFields(fields, func(name string) bool {
		trailer := strings.HasPrefix(name, http.TrailerPrefix)
		w.trailers.expected = w.trailers.expected || trailer
		return trailer || isLengthField(name) || name == "Connection" || w.status == http.StatusNotModified && name == "Content-Type"
	})
	if !dated {
		w.out = append(append(w.out, "Date: "...), w.conn.server.dates.At(time.Now())...)
		w.out = append(w.out, "\r\n"...)
	}
}

// complete writes the rest of the header, which depends on the body. done says that the
// handler has returned.
func (w *writer) complete(done bool) {
	if w.begun {
		return
	}
	w.begun = true
	if done && w.length == unknown && !w.trailers.expected && allowsBody(w.status) && (!w.toHead || len(w.held) > 0) {
		w.length = int64(len(w.held))
		w.declared = strconv.FormatInt(w.length, 10)
	}
	w.settleBody()
	switch {
	case w.length != unknown && allowsBody(w.status):
		w.out = appendField(w.out, "Content-Length", w.declared)
	case !w.toHead && allowsBody(w.status):
		w.chunked = true
		w.out = append(w.out, "Transfer-Encoding: chunked\r\n"...)
	}
	w.appendConnection()
	w.out = append(w.out, "\r\n"...)
	if len(w.held) > 0 && !w.toHead {
		_, _ = w.body(w.held) // Later writes return the error.
	}
}

// appendConnection writes the Connection field of the answer.
func (w *writer) appendConnection() {
	if w.options == "close" || w.conn.server.closing.Load() {
		w.mayReuse = false
	}
	switch {
	case !w.mayReuse:
		w.out = append(w.out, "Connection: close\r\n"...)
	case w.options != "":
		w.out = append(append(append(w.out, "Connection: "...), w.options...), "\r\n"...)
	}
}

// settleBody reads over the rest of the request's body, unless the handler reads it while it
// writes. Some clients read no answer before they have sent the whole body.
func (w *writer) settleBody() {
	b := &w.transaction.body
	if b.conn == nil || w.duplex || !w.mayReuse || w.options == "close" || b.ended.Load() {
		return
	}
	if !b.discard() {
		w.mayReuse = false
	}
}

// appendFields writes the fields, except those of the names for which skip returns true.
func (w *writer) appendFields(fields *http1.List, skip func(name string) bool) {
	for i := range fields.Len() {
		if name, value := fields.Line(i); !skip(name) {
			w.out = appendField(w.out, name, value)
		}
	}
}

// appendField writes one field. A line end inside a value becomes a blank, as in net/http.
func appendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	start := len(b)
	b = append(b, trim(value)...)
	for i, c := range b[start:] {
		if c == '\r' || c == '\n' {
			b[start+i] = ' '
		}
	}
	return append(b, "\r\n"...)
}

// trim removes the blanks and line ends around a value. Few values have any.
func trim(s string) string {
	if n := len(s); n > 0 && s[0] > ' ' && s[n-1] > ' ' {
		return s
	}
	return strings.Trim(s, " \t\r\n")
}

// appendStatus writes a status line.
func appendStatus(b []byte, status int) []byte {
	if status == http.StatusOK {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	b = strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = strconv.AppendInt(append(b, "status code "...), int64(status), 10)
	}
	return append(b, "\r\n"...)
}
