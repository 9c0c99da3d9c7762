package network

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// pair is a client's connection and the one to the server that goes with it.
type pair struct {
	link   *Link
	client *net.TCPConn

	once sync.Once
	done chan struct{} // Closed at the end of both connections.

	mu     sync.Mutex // Guards what follows.
	server *net.TCPConn
	ended  bool
}

// chunk is something on its way: bytes, or one side's end.
type chunk struct {
	data  []byte
	due   time.Time
	end   bool
	reset bool // With end: an end by RST.
}

const (
	chunkSize = 16 << 10 // The most bytes in a chunk.
	queueSize = 64       // The most chunks on their way, in one direction of one connection.
)

func (p *pair) serve() {
	defer p.link.forget(p)
	if !p.link.pass(up, p.done) { // The server does not hear of clients while nothing passes.
		return
	}
	conn, err := net.DialTimeout("tcp", p.link.upstream, patience) //nolint:noctx // the time is bounded
	if err != nil {
		p.end(true)
		return
	}
	server, ok := conn.(*net.TCPConn)
	if !ok || !p.join(server) {
		_ = conn.Close()
		p.end(true)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.carry(up, p.client, server) })
	both.Go(func() { p.carry(down, server, p.client) })
	both.Wait()
	p.end(false)
}

// join says no when the pair has ended in the meantime.
func (p *pair) join(server *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
	return !p.ended
}

// end closes both connections, by RST if reset.
func (p *pair) end(reset bool) {
	p.once.Do(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = true
		close(p.done)
		for _, conn := range []*net.TCPConn{p.client, p.server} {
			if conn == nil {
				continue
			}
			if reset {
				_ = conn.SetLinger(0)
			}
			_ = conn.Close()
		}
	})
}

// carry takes from one side to the other until the first has ended and the other
// has been told, or the pair has ended.
func (p *pair) carry(d direction, from, to *net.TCPConn) {
	queue := make(chan chunk, queueSize)
	var reader sync.WaitGroup
	reader.Go(func() { p.read(d, from, queue) })
	defer reader.Wait()
	for {
		select {
		case c := <-queue:
			if !p.deliver(d, c, to) {
				p.end(false) // So that the reader ends too.
				return
			}
			if c.end {
				return
			}
		case <-p.done:
			return
		}
	}
}

// read fills the queue until the side ends, which is the last thing in it.
func (p *pair) read(d direction, from net.Conn, queue chan<- chunk) {
	var due time.Time
	for {
		data := make([]byte, chunkSize)
		n, err := from.Read(data)
		if n == 0 && err == nil {
			continue
		}
		if next := time.Now().Add(p.link.delay(d)); next.After(due) {
			due = next // Never before what was read earlier.
		}
		c := chunk{data: data[:n], due: due, end: err != nil, reset: err != nil && !errors.Is(err, io.EOF)}
		select {
		case queue <- c:
		case <-p.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// deliver waits until the chunk may go on, and sends it; false says that the pair
// has ended.
func (p *pair) deliver(d direction, c chunk, to *net.TCPConn) bool {
	if !wait(c.due, p.done) {
		return false
	}
	for len(c.data) > 0 {
		n, at := p.link.slot(d, len(c.data))
		if !wait(at, p.done) || !p.link.pass(d, p.done) {
			return false
		}
		if _, err := to.Write(c.data[:n]); err != nil {
			return false
		}
		c.data = c.data[n:]
	}
	if !c.end {
		return true
	}
	if !p.link.pass(d, p.done) {
		return false
	}
	if c.reset {
		p.end(true)
		return false
	}
	return to.CloseWrite() == nil
}
