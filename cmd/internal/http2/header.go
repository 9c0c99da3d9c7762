package http2

import (
	"errors"
	"strings"

	wire "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"golang.org/x/net/http/httpguts"
)

const (
	// tableBytes is the size of the table of the decoder.
	tableBytes = 4 << 10
	// fieldsBeyond and fieldOverhead are how much longer than MaxHeader a header list may be. net/http allows for the overhead
	// of ten fields.
	fieldsBeyond  = 10
	fieldOverhead = 32
)

// headerReader decodes the headers of a connection.
type headerReader struct {
	decoder *hpack.Decoder
	most    uint32 // bound of a header list, in bytes

	// The last header.
	fields    []hpack.HeaderField // pseudo fields first
	pseudo    int                 // number of pseudo fields
	left      uint32              // of most
	names     uint32              // of most, for the names in the fields Trailer
	truncated bool                // fields are missing, because the list is too long
	invalid   error
}

func (h *headerReader) init(maxHeader int) {
	h.most = uint32(maxHeader) + fieldsBeyond*fieldOverhead
	h.decoder = hpack.NewDecoder(tableBytes, h.emit)
	h.decoder.SetMaxStringLength(int(h.most))
}

var (
	errFieldValue  = errors.New("http2: invalid byte in the value of a field")
	errFieldName   = errors.New("http2: invalid name of a field")
	errPseudoOrder = errors.New("http2: a pseudo field is behind other fields")
	errPseudo      = errors.New("http2: unknown or repeated pseudo field")
)

// emit adds a field.
func (h *headerReader) emit(f hpack.HeaderField) {
	pseudo := strings.HasPrefix(f.Name, ":")
	switch {
	case !httpguts.ValidHeaderFieldValue(f.Value):
		h.invalid = errFieldValue
	case pseudo && len(h.fields) > h.pseudo:
		h.invalid = errPseudoOrder
	case pseudo && !h.isNewPseudo(f.Name):
		h.invalid = errPseudo
	case !pseudo && !isWireName(f.Name):
		h.invalid = errFieldName
	}
	if h.invalid != nil {
		h.decoder.SetEmitEnabled(false)
		return
	}
	left, size := &h.left, f.Size()
	if f.Name == "trailer" { // Each name is counted as a field, beside the other fields, as golang.org/x/net does.
		commas := strings.Count(f.Value, ",")
		left, size = &h.names, uint32(len(f.Value)-commas+(commas+1)*fieldOverhead)
	}
	if size > *left {
		h.decoder.SetEmitEnabled(false)
		h.truncated, h.left, h.names = true, 0, 0
		return
	}
	*left -= size
	h.fields = append(h.fields, f)
	if pseudo {
		h.pseudo++
	}
}

// isNewPseudo reports whether a request may have a pseudo field beside those before.
func (h *headerReader) isNewPseudo(name string) bool {
	switch name {
	case ":method", ":path", ":scheme", ":authority", ":protocol":
	default:
		return false
	}
	for i := range h.pseudo {
		if h.fields[i].Name == name {
			return false
		}
	}
	return true
}

// isWireName reports whether a name is a token without capitals.
func isWireName(name string) bool {
	for i := range len(name) {
		if !wireNameTable[name[i]] {
			return false
		}
	}
	return name != ""
}

var wireNameTable = func() (table [256]bool) {
	for c := range 256 {
		table[c] = c < 0x80 && httpguts.IsTokenRune(rune(c)) && (c < 'A' || c > 'Z')
	}
	return table
}()

// readHeader reads the header that begins with f, and its CONTINUATION frames. A wire.StreamError says that the header is
// invalid; other errors end the connection. The fields stay valid until the next header.
func (c *conn) readHeader(f *wire.HeadersFrame) (wire.Frame, error) {
	h := &c.header
	h.fields, h.pseudo, h.left, h.names, h.truncated, h.invalid = h.fields[:0], 0, h.most, h.most, false, nil
	h.decoder.SetEmitEnabled(true)
	fragment, more := f.HeaderBlockFragment(), !f.HeadersEnded()
	for {
		// A client that sends much more than the bound, or goes on after a fault, is disconnected.
		if int64(len(fragment)) > 2*(int64(h.left)+int64(h.names)) || h.invalid != nil {
			return f, errProtocol
		}
		if _, err := h.decoder.Write(fragment); err != nil {
			return f, wire.ConnectionError(wire.ErrCodeCompression)
		}
		if !more {
			break
		}
		if c.useless++; c.useless > mostUseless {
			return f, errUseless
		}
		c.flush() // The rest may take long.
		next, err := c.framer.ReadFrame()
		if err != nil {
			return nil, err //nolint:wrapcheck // because the kind of the error says what ends.
		}
		rest, ok := next.(*wire.ContinuationFrame)
		if !ok {
			return nil, errProtocol
		}
		fragment, more = rest.HeaderBlockFragment(), !rest.HeadersEnded()
	}
	if h.decoder.Close() != nil {
		return f, wire.ConnectionError(wire.ErrCodeCompression)
	}
	if h.invalid != nil {
		return f, streamError(f.StreamID, wire.ErrCodeProtocol) // The stream counts as not opened, as in net/http.
	}
	return f, nil
}

// forget drops the fields, so that an idle connection does not keep them.
func (h *headerReader) forget() {
	clear(h.fields)
	if h.fields = h.fields[:0]; cap(h.fields) > mostFields {
		h.fields = nil
	}
}

// flush lets a worker write what is queued.
func (c *conn) flush() {
	c.mu.Lock()
	defer c.unlock()
	c.kick()
}
