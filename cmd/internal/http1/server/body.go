package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
)

// mostDiscarded is how much of a body is read over, so that the connection can be used
// again. It is the bound of net/http.
const mostDiscarded = 256 << 10

// body reads the body of a request that has a Content-Length.
type body struct {
	conn        *conn
	transaction *transaction
	left        int64       // bytes that are not read yet
	closed      bool        // by the handler
	broken      bool        // the client does not send the rest
	ended       atomic.Bool // all bytes were read
}

// Read implements io.Reader. It returns io.EOF with the last bytes.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	n, err := b.read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 {
		b.ended.Store(true)
		return n, io.EOF
	}
	if err != nil {
		b.broken = !errors.Is(err, os.ErrDeadlineExceeded) // The handler may allow more time.
		b.transaction.ctx.end()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// read reads the bytes that came with the header, and then the connection.
func (b *body) read(p []byte) (int, error) {
	if t := b.transaction; t.start < t.end {
		n := copy(p, t.unread())
		t.start += n
		return n, nil
	}
	return b.conn.Conn.Read(p)
}

// AtHand returns how many bytes of the body have come with the header, and are not read yet.
func (b *body) AtHand() int { return int(min(int64(len(b.transaction.unread())), b.left)) }

// Close implements io.Closer.
func (b *body) Close() error {
	b.closed = true
	return nil
}

// discard reads the rest of the body over. It returns false if the rest is too long or does
// not arrive.
func (b *body) discard() bool {
	b.closed = false
	if b.broken || b.left > mostDiscarded {
		return false
	}
	_, err := io.Copy(io.Discard, b)
	return err == nil && b.left == 0
}
