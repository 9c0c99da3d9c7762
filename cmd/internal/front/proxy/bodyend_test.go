package proxy

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// deadlines is a connection that ignores deadlines.
type deadlines struct{}

func (deadlines) SetReadDeadline(time.Time) error  { return nil }
func (deadlines) SetWriteDeadline(time.Time) error { return nil }
func (deadlines) EnableFullDuplex() error          { return nil }

// drained is a body at its end. Its second Read lasts until the body's end has returned, or for
// 50 ms.
type drained struct {
	second, ended chan struct{}
	reads         int
	late          bool // end returned during a Read
}

// Read implements io.Reader.
func (d *drained) Read([]byte) (int, error) {
	if d.reads++; d.reads > 1 {
		close(d.second)
		select {
		case <-d.ended:
			d.late = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	return 0, io.EOF
}

// Close implements io.Closer.
func (*drained) Close() error { return nil }

// TestBodyEndsAfterItsReads checks that end waits for a Read at the end of the body. The
// transport checks the end of a body with one more Read, while the response may already be
// complete. That Read clears the read deadline. net/http sets this deadline to interrupt its
// own read before it serves the next request. A late clear leaves a pipelined request unserved.
func TestBodyEndsAfterItsReads(t *testing.T) {
	inner := &drained{second: make(chan struct{}), ended: make(chan struct{})}
	b := &body{ReadCloser: inner, from: deadlines{}, request: new(http.Request).WithContext(t.Context()), idle: time.Minute, stream: true}
	if _, err := b.Read(nil); err != io.EOF { //nolint:errorlint // because the transport compares it.
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = b.Read(nil)
	}()
	<-inner.second
	b.end()
	close(inner.ended)
	<-read
	if inner.late {
		t.Error("end returned while a Read could still clear the read deadline")
	}
}
