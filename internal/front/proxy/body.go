package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lingering is how long a client may go on sending a body that nobody wants any
// more. It reads our answer the more surely the less of it is met by a reset.
const lingering = time.Second

// body reads what a client sends, however long that takes in all, but no longer
// than idle for the next part. It remembers that it failed: an upload that ends
// early is no failure of the upstream. The transport may read it from another
// goroutine than the handler's.
type body struct {
	io.ReadCloser

	from    connection // nil where there is none, in tests
	request *http.Request
	idle    time.Duration
	trailer http.Header // filled when the end is read
	allowed []string    // the fields of it that the service gets
	stream  bool        // of a connection with one request at a time
	untaken *time.Timer // runs while the upstream has not taken what was read; nil without a bound
	place   *place      // of the request; nil without a Server, in tests
	failure atomic.Int32
	ended   atomic.Bool // the end was read: what follows on the connection is another request

	reading sync.Mutex // held while the connection is read
	mu      sync.Mutex // guards what follows, and which deadline is set last
	closed  bool
	begun   bool  // the answer has begun: the client may send the rest when it likes
	since   int64 // since when the client is waited for, as place has it; 0 when it is not
}

// The ways in which a client's body fails.
const (
	bodyFine int32 = iota
	bodyBroken
	bodyStalled
	bodyFolded  // a line of the trailer continues the line before
	bodyUntaken // The upstream did not take it.
)

var errFolded = errors.New("proxy: a line of the trailer continues the line before")

// Read implements io.Reader. At the end it takes the deadline back: the server
// goes on reading, to notice that the client went away.
func (b *body) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if !b.begin() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	b.read(n, err)
	// A deadline that passes while nothing is read ends a stream of HTTP/2 all the same.
	if b.from != nil && b.idle > 0 && (err != nil || !b.stream) {
		_ = b.from.SetReadDeadline(time.Time{})
	}
	if err == nil {
		return n, nil
	}
	switch {
	case errors.Is(err, io.EOF):
		b.ended.Store(true)
		b.filterTrailer()
		if connOf(b.request).isFolded(b.request) {
			b.failure.Store(bodyFolded)
			return n, errFolded
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.failure.Store(bodyStalled)
	default:
		b.failure.Store(bodyBroken)
	}
	return n, err
}

// failed reports whether the client has not sent its body as it should; nil is no body.
func (b *body) failed() bool {
	if b == nil {
		return false
	}
	failure := b.failure.Load()
	return failure != bodyFine && failure != bodyUntaken
}

// filterTrailer removes all fields that are not allowed.
func (b *body) filterTrailer() {
	for name := range b.trailer {
		if !slices.Contains(b.allowed, name) {
			delete(b.trailer, name)
		}
	}
}

// read notes that the client is not waited for any more, and gives the upstream idle to
// take what has been read. The end may be read before the last part is written: watch
// stops the timer then.
func (b *body) read(n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopWaiting()
	if b.untaken != nil && !b.closed && (n > 0 || errors.Is(err, io.EOF)) {
		b.untaken.Reset(b.idle)
	}
}

// begin gives the client idle for the next part, unless the body is closed. Until that
// part has arrived, the request may give way to another: as long as its answer has not
// begun, since a stream of both directions may be silent for as long as it likes.
func (b *body) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.untaken != nil {
		b.untaken.Stop()
	}
	if b.closed {
		return false
	}
	now := time.Now()
	if b.from != nil && b.idle > 0 {
		_ = b.from.SetReadDeadline(now.Add(b.idle))
	}
	if !b.begun {
		b.since = b.place.expects(now)
	}
	return true
}

// answered notes that the answer has begun.
func (b *body) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = true
	b.stopWaiting()
}

// stopWaiting is called with mu held.
func (b *body) stopWaiting() {
	b.place.has(b.since)
	b.since = 0
}

// end is called when the handler ends. It breaks off a Read that waits, and all
// further ones fail: from may soon be another request's. The server reads over what
// is left of the body then, for as long as lingering, and closes the connection.
func (b *body) end() {
	b.mu.Lock()
	b.closed = true
	b.stopWaiting()
	whole := b.from == nil || b.ended.Load()
	if !whole {
		_ = b.from.SetReadDeadline(time.Now())
	}
	b.mu.Unlock()
	if whole {
		return
	}
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.stream && !b.ended.Load() { // After its end the server reads on, without a deadline.
		_ = b.from.SetReadDeadline(time.Now().Add(lingering))
	}
}
