package http2

import "sync"

const (
	// idleWorkers and idleWorkersOfConn bound the workers that wait for work: so many, and so many more for each connection.
	// Without a connection, no worker waits.
	idleWorkers       = 32
	idleWorkersOfConn = 4
	// mostIdleWorkers bounds the workers that wait on all connections.
	mostIdleWorkers = 512
)

// work is what a worker does: it serves a stream, or writes what is queued for a connection.
type work struct {
	stream *stream
	conn   *conn
}

// do does the work.
func (w work) do() {
	if w.stream != nil {
		w.stream.serve()
		return
	}
	w.conn.writeQueued()
}

// workers are goroutines that serve streams. A worker that waits keeps its stack, which handlers would otherwise grow for each
// request.
type workers struct {
	mu   sync.Mutex
	most int // bound of idle
	idle []chan work
}

// start does the work on another goroutine.
func (p *workers) start(w work) {
	p.mu.Lock()
	last := len(p.idle) - 1
	if last < 0 {
		p.mu.Unlock()
		go p.serve(w)
		return
	}
	todo := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	p.mu.Unlock()
	todo <- w // The channel has space for one.
}

// serve does the first work, and then more until too many workers wait.
func (p *workers) serve(first work) {
	todo := make(chan work, 1)
	for w, more := first, true; more; w, more = <-todo {
		w.do()
		if !p.wait(todo) {
			return
		}
	}
}

// wait adds a worker to those that wait. It returns false if enough wait.
func (p *workers) wait(todo chan work) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= p.most {
		return false
	}
	p.idle = append(p.idle, todo)
	return true
}

// bound sets how many workers may wait, by the number of connections, and ends the others.
func (p *workers) bound(conns int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most = min(idleWorkers+conns*idleWorkersOfConn, mostIdleWorkers); conns == 0 {
		p.most = 0
	}
	for last := len(p.idle) - 1; last >= p.most; last-- {
		close(p.idle[last])
		p.idle[last] = nil
		p.idle = p.idle[:last]
	}
}
