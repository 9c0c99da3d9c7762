package proxy

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// stream is one direction of a connection in memory. A write never blocks: the driver of a
// test writes while nothing reads.
type stream struct {
	mu       sync.Mutex
	changed  sync.Cond
	unread   []byte
	ended    error // what a reader gets after the unread bytes: io.EOF or a reset
	closed   bool  // the reader has closed the connection
	deadline time.Time
	timer    *time.Timer
}

func newStream() *stream {
	s := new(stream)
	s.changed.L = &s.mu
	return s
}

// read blocks until there are bytes, the end, or the deadline.
func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return 0, net.ErrClosed
		case !s.deadline.IsZero() && !time.Now().Before(s.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(s.unread) > 0:
			n := copy(p, s.unread)
			if s.unread = s.unread[n:]; len(s.unread) == 0 {
				s.unread = nil
			}
			return n, nil
		case s.ended != nil:
			return 0, s.ended
		}
		s.arm()
		s.changed.Wait()
	}
}

// arm wakes the reader at the deadline. The caller holds mu.
func (s *stream) arm() {
	if s.deadline.IsZero() {
		return
	}
	left := time.Until(s.deadline)
	if s.timer == nil {
		s.timer = time.AfterFunc(left, s.wake)
		return
	}
	s.timer.Reset(left)
}

func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil:
		return 0, net.ErrClosed
	case s.closed:
		return 0, &net.OpError{Op: "write", Net: "memory", Err: syscall.EPIPE}
	}
	s.unread = append(s.unread, p...)
	s.changed.Broadcast()
	return len(p), nil
}

// end ends the direction. A reset discards the unread bytes.
func (s *stream) end(with error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = with
	}
	if with != io.EOF { //nolint:errorlint // because the errors are the sentinels of this file.
		s.ended, s.unread = with, nil
	}
	s.changed.Broadcast()
}

// close ends the reading side.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.unread = true, nil
	if s.timer != nil {
		s.timer.Stop()
	}
	s.changed.Broadcast()
}

func (s *stream) setDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	s.changed.Broadcast()
}

// peek returns a copy of the unread bytes, and whether the writer has ended the direction.
func (s *stream) peek() (unread []byte, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]byte(nil), s.unread...), s.ended != nil
}

// memoryConn is one end of a connection in memory.
type memoryConn struct {
	in, out       *stream
	local, remote net.Addr
}

// newPipe returns both ends of a connection from the address from.
func newPipe(from net.Addr) (client, server *memoryConn) {
	up, down, at := newStream(), newStream(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	return &memoryConn{down, up, from, at}, &memoryConn{up, down, at, from}
}

func (c *memoryConn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *memoryConn) Write(p []byte) (int, error) { return c.out.write(p) }
func (c *memoryConn) LocalAddr() net.Addr         { return c.local }
func (c *memoryConn) RemoteAddr() net.Addr        { return c.remote }

func (c *memoryConn) Close() error {
	c.in.close()
	return c.CloseWrite()
}

func (c *memoryConn) CloseWrite() error {
	c.out.end(io.EOF)
	return nil
}

// Disconnected implements server.Socket.
func (c *memoryConn) Disconnected() bool {
	_, ended := c.in.peek()
	return ended
}

// Quiet tells the own client that an idle connection can be used again.
func (c *memoryConn) Quiet() bool {
	unread, ended := c.in.peek()
	return len(unread) == 0 && !ended
}

// Abort resets the connection.
func (c *memoryConn) Abort() {
	c.in.close()
	c.out.end(&net.OpError{Op: "read", Net: "memory", Err: syscall.ECONNRESET})
}

func (c *memoryConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *memoryConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(t)
	return nil
}

// SetWriteDeadline has no effect, because writes never block.
func (c *memoryConn) SetWriteDeadline(time.Time) error { return nil }

// memoryListener accepts connections in memory.
type memoryListener struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// connect opens a connection from the address from.
func (l *memoryListener) connect(from net.Addr) (*memoryConn, error) {
	client, server := newPipe(from)
	select {
	case l.accepted <- server:
		return client, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	}
}

// dial implements dialFunc.
func (l *memoryListener) dial(context.Context, string, string) (net.Conn, error) {
	return l.connect(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000})
}
