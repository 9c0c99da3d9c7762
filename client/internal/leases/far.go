package leases

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// Dial connects to a server by its address.
type Dial = func(ctx context.Context, at string) (net.Conn, error)

// Far makes a dialer whose connections delay each byte, in both directions.
func Far(delay time.Duration, dial Dial) Dial {
	return func(ctx context.Context, at string) (net.Conn, error) {
		near, err := dial(ctx, at)
		if err != nil {
			return nil, err
		}
		f := &far{Conn: near, delay: delay, closed: make(chan struct{})}
		f.up, f.down = make(chan piece, underWay), make(chan piece, underWay)
		go f.carry()
		go f.fetch()
		return f, nil
	}
}

// underWay bounds the writes that are under way. Further ones wait.
const underWay = 10_000

// piece is what one call has written, and when it arrives.
type piece struct {
	bytes []byte
	at    time.Time
	err   error
}

// far is a connection with a delay.
type far struct {
	net.Conn

	delay    time.Duration
	up, down chan piece
	closed   chan struct{}
	once     sync.Once
	read     piece // One goroutine at a time reads.
}

// Close implements net.Conn.
func (f *far) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

// Write implements net.Conn.
func (f *far) Write(b []byte) (int, error) {
	if f.put(f.up, piece{bytes: append([]byte(nil), b...), at: time.Now().Add(f.delay)}) {
		return len(b), nil
	}
	return 0, net.ErrClosed
}

func (f *far) put(to chan piece, p piece) bool {
	select {
	case to <- p:
		return true
	case <-f.closed:
		return false
	}
}

// get waits until the next piece arrives.
func (f *far) get(from chan piece) (p piece, ok bool) {
	select {
	case p = <-from:
	case <-f.closed:
		return p, false
	}
	timer := time.NewTimer(time.Until(p.at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return p, true
	case <-f.closed:
		return p, false
	}
}

// carry writes what has arrived to the other side.
func (f *far) carry() {
	for {
		p, ok := f.get(f.up)
		if !ok {
			return
		}
		if _, err := f.Conn.Write(p.bytes); err != nil {
			return
		}
	}
}

// fetch reads what the other side sends.
func (f *far) fetch() {
	for {
		b := make([]byte, 4096)
		n, err := f.Conn.Read(b)
		if !f.put(f.down, piece{bytes: b[:n], at: time.Now().Add(f.delay), err: err}) || err != nil {
			return
		}
	}
}

// Read implements net.Conn.
func (f *far) Read(b []byte) (int, error) {
	for len(f.read.bytes) == 0 {
		if f.read.err != nil {
			return 0, f.read.err
		}
		var ok bool
		if f.read, ok = f.get(f.down); !ok {
			return 0, io.EOF
		}
	}
	n := copy(b, f.read.bytes)
	f.read.bytes = f.read.bytes[n:]
	return n, nil
}
