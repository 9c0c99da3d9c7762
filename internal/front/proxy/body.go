package proxy

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// body reads what a client sends, however long that takes in all, but no longer
// than idle for the next part. It remembers that it failed: an upload that ends
// early is no failure of the upstream. The transport may read it from another
// goroutine than the handler's.
type body struct {
	io.ReadCloser

	from    connection // nil where there is none, in tests
	idle    time.Duration
	failure atomic.Int32
}

// The ways in which a client's body fails.
const (
	bodyFine int32 = iota
	bodyBroken
	bodyStalled
)

// Read implements io.Reader. At the end it takes the deadline back: the server
// goes on reading, to notice that the client went away.
func (b *body) Read(p []byte) (int, error) {
	if b.from != nil && b.idle > 0 {
		_ = b.from.SetReadDeadline(time.Now().Add(b.idle))
	}
	n, err := b.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	if b.from != nil && b.idle > 0 {
		_ = b.from.SetReadDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, io.EOF):
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.failure.Store(bodyStalled)
	default:
		b.failure.Store(bodyBroken)
	}
	return n, err
}
