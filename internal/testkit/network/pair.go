package network

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// pair is a client's connection and its connection to the server.
type pair struct {
	link   *Link
	client *net.TCPConn

	once sync.Once
	done chan struct{} // Closed when both connections have ended.

	mu     sync.Mutex // Guards the fields below.
	server *net.TCPConn
	ended  bool
}

// chunk is bytes, or the end of one side.
type chunk struct {
	data  []byte
	due   time.Time
	end   bool
	reset bool // With end: the side ended with RST.
}

const (
	chunkSize = 16 << 10 // The maximum bytes of a chunk.
	queueSize = 64       // The maximum chunks in one direction of one connection.
)

func (p *pair) serve() {
	defer p.link.forget(p)
	if !p.link.pass(up, p.done) { // While nothing is forwarded, the server must not see a new connection.
		return
	}
	conn, err := net.DialTimeout("tcp", p.link.target(), timeout) //nolint:noctx // the time is bounded
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

// join returns false when the pair has already ended.
func (p *pair) join(server *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
	return !p.ended
}

// end closes both connections, with RST if reset is true.
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

// carry forwards one direction. It returns after it has forwarded the end of the side, or when
// the pair has ended.
func (p *pair) carry(d direction, from, to *net.TCPConn) {
	queue := make(chan chunk, queueSize)
	var reader sync.WaitGroup
	reader.Go(func() { p.read(d, from, queue) })
	defer reader.Wait()
	for {
		select {
		case c := <-queue:
			if !p.deliver(d, c, to) {
				p.end(false) // This also ends the reader.
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

// read fills the queue. Its last chunk is the end of the side.
func (p *pair) read(d direction, from net.Conn, queue chan<- chunk) {
	var due time.Time
	for {
		data := make([]byte, chunkSize)
		n, err := from.Read(data)
		if n == 0 && err == nil {
			continue
		}
		if next := time.Now().Add(p.link.delay(d)); next.After(due) {
			due = next // Chunks keep their order.
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

// deliver waits until the chunk is due, and sends it. It returns false when the pair has ended.
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
