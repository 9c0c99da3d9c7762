package http1

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Ahead is a connection that notices what its peer does while nothing reads. It serves connections whose sockets do not tell this, because
// they have no descriptor or because of the system. A goroutine reads one byte ahead, which the next Read returns.
type Ahead struct {
	net.Conn

	mu       sync.Mutex
	deadline time.Time     // of reads
	reading  chan struct{} // closed at the end of the read ahead; nil if there is none

	// The read ahead writes these fields before it closes reading.
	one   [1]byte
	found bool // one is not read yet
	gone  bool // the peer has closed the connection
}

// NewAhead returns a connection on inner, which has no deadline yet.
func NewAhead(inner net.Conn) *Ahead { return &Ahead{Conn: inner} }

// Watch starts to read ahead, until the next Read or Quiet. If the connection ends before, left is called from another goroutine.
// Nothing else may read at this time. A second call has no effect.
func (a *Ahead) Watch(left func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reading != nil || a.found {
		return
	}
	ended := make(chan struct{})
	a.reading = ended
	_ = a.Conn.SetReadDeadline(time.Time{})
	go func() {
		n, err := a.Conn.Read(a.one[:])
		a.found = n > 0
		gone := n == 0 && !errors.Is(err, os.ErrDeadlineExceeded)
		a.gone = gone
		close(ended)
		if gone {
			left()
		}
	}()
}

// Quiet ends the read ahead. It reports whether the peer has sent no byte and has not closed the connection since Watch.
func (a *Ahead) Quiet() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end()
	return !a.found && !a.gone
}

// end ends the read ahead. The caller holds mu.
func (a *Ahead) end() {
	if a.reading == nil {
		return
	}
	_ = a.Conn.SetReadDeadline(time.Unix(1, 0)) // A time in the past.
	<-a.reading
	a.reading = nil
	_ = a.Conn.SetReadDeadline(a.deadline)
}

// Read implements net.Conn.
func (a *Ahead) Read(p []byte) (int, error) {
	if len(p) > 0 && a.take(p) {
		return 1, nil
	}
	return a.Conn.Read(p)
}

// take ends the read ahead, and moves its byte to p.
func (a *Ahead) take(p []byte) (found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end()
	found, a.found = a.found, false
	if found {
		p[0] = a.one[0]
	}
	return found
}

// SetReadDeadline implements net.Conn. The read ahead has no deadline.
func (a *Ahead) SetReadDeadline(t time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deadline = t
	if a.reading != nil {
		return nil
	}
	return a.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (a *Ahead) SetDeadline(t time.Time) error {
	return errors.Join(a.SetReadDeadline(t), a.SetWriteDeadline(t))
}

// CloseWrite closes the sending side of the connection.
func (a *Ahead) CloseWrite() error {
	if half, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
