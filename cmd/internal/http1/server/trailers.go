package server

import (
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// trailers are the fields after a body in chunks.
type trailers struct {
	names    []string // that the header announces
	expected bool     // the answer may have trailers: the Trailer field or the names of fields say so
}

// announce notes the names in the lines of the Trailer field.
func (t *trailers) announce(lines []string) {
	for _, line := range lines {
		t.expected = true
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(strings.Trim(name, " \t"))
			if httpguts.ValidTrailerHeader(name) {
				t.names = append(t.names, name)
			}
		}
	}
}

// end returns the end of a body in chunks, with the values that the handler has set.
func (t *trailers) end(h http.Header) []byte {
	b := []byte("0\r\n")
	for _, name := range t.names {
		for _, value := range h[name] {
			b = appendField(b, name, value)
		}
	}
	for name, values := range h {
		plain, found := strings.CutPrefix(name, http.TrailerPrefix)
		for _, value := range values {
			if found && httpguts.ValidHeaderFieldName(plain) {
				b = appendField(b, plain, value)
			}
		}
	}
	return append(b, "\r\n"...)
}

// chunk writes a piece of the body with its length before it.
func (w *writer) chunk(p []byte) (int, error) {
	var line [20]byte
	size := append(strconv.AppendInt(line[:0], int64(len(p)), 16), "\r\n"...)
	if _, err := w.put(size); err != nil {
		return 0, err
	}
	n, err := w.put(p)
	if err != nil {
		return n, err
	}
	_, err = w.put(line[len(size)-2 : len(size)])
	return n, err
}
