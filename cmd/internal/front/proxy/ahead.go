package proxy

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/headgate/headgate/internal/ahead"
	"github.com/headgate/headgate/internal/fields"
)

// What is read of a body before the decision takes memory: one place for each aheadOfPlace bytes beyond aheadOfRequest, which the
// request's own place covers.
const (
	aheadOfRequest = 32 << 10
	aheadOfPlace   = 128 << 10
)

// aheadPlaces returns the places of a buffer.
func aheadPlaces(size int64) int64 {
	return (max(0, size-aheadOfRequest) + aheadOfPlace - 1) / aheadOfPlace
}

// openBody prepares the reading of the request's body, once.
func (x *exchange) openBody(r *http.Request) {
	if x.body != nil {
		return
	}
	x.body = &body{
		ReadCloser: r.Body, request: r, idle: x.settings.bodyIdle, stream: x.stream, place: x.place,
		trailer: r.Trailer, allowed: x.settings.proxy.trailerNames(r.Trailer, entryOf(x).requestIDName()),
	}
	x.body.awaits = x.awaits()
	x.body.filterTrailer() // Filter the announced trailers now, and the received ones later.
	if from, ok := x.ResponseWriter.(connection); ok {
		x.body.from = from
		// Without full duplex, an HTTP/1 server discards the unread body when the
		// response starts, even while the upstream still reads the body.
		_ = from.EnableFullDuplex()
	}
}

// readAhead reads the beginning of the body before the decision, up to most bytes, as far as there is memory for it, and for bodyIdle. The
// body of the forwarded request begins with it. The first read answers an Expect: 100-continue of the client, so that the service
// gets none.
func (x *exchange) readAhead(r *http.Request, most int64) (data []byte, part bool, err error) {
	if !x.sends {
		return nil, false, nil
	}
	began := time.Now()
	x.openBody(r)
	x.fields.Delete("Expect")
	b := x.body
	b.reading.Lock()
	defer b.reading.Unlock()
	part, err = b.ahead.Fill(&ahead.Source{
		Pool: &x.settings.proxy.bodies, From: receiver{b}, Length: r.ContentLength, Most: most, Grow: b.grow,
		Late: func() bool { return b.idle > 0 && time.Since(began) > b.idle },
	})
	b.replays = true
	x.awaited = time.Since(began)
	return b.ahead.Bytes(), part, err //nolint:wrapcheck // unread compares the error.
}

// receiver reads from the client of a body whose reading is held.
type receiver struct{ *body }

// Read implements io.Reader.
func (r receiver) Read(p []byte) (int, error) { return r.receive(p) }

// grow takes the places for a larger buffer.
func (b *body) grow(size int64) bool {
	more := aheadPlaces(size) - b.weight
	if !b.place.grow(more) {
		return false
	}
	b.weight += max(0, more)
	return true
}

// replay reads what was read before the decision. The caller holds reading.
func (b *body) replay(p []byte) (int, error) {
	n, err := b.ahead.Read(p)
	if b.ahead.Len() == 0 {
		b.replays = err != nil // The end is read again.
		b.place.shrink(b.weight)
		b.weight = 0
	}
	b.forwards(n, err)
	return n, err //nolint:wrapcheck // It is io.EOF.
}

// over reports whether the request may read no more.
func (b *body) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed || b.stopped
}

// drop gives the memory of ahead back. The caller holds reading.
func (b *body) drop() {
	b.ahead.Release()
	b.place.shrink(b.weight)
	b.weight = 0
}

// release is drop for a caller that does not hold reading.
func (b *body) release() {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.drop()
}

// forwards starts the upstream's time to accept bytes that did not have to be waited for.
func (b *body) forwards(n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stallTimer != nil && !b.closed && (n > 0 || errors.Is(err, io.EOF)) {
		b.stallTimer.Reset(b.idle)
	}
}

// unread reports whether err is that of reading the body, and not of the decision.
func (b *body) unread(err error) bool {
	return b.failure.Load() != bodyFine || errors.Is(err, http.ErrBodyReadAfterClose)
}

// firstLine returns the first line of a field; "" without one.
func firstLine(h fields.Header, name string) string {
	if lines := h.Lines(name); len(lines) > 0 {
		return lines[0]
	}
	return ""
}
