package network

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Link forwards connections to one server. Its methods are safe for concurrent use. Heal can fail
// the test, so that it must be called from the test's goroutine.
type Link struct {
	// Addr is the address for clients. It never changes.
	Addr string

	tb   testing.TB
	work sync.WaitGroup // All goroutines of the link.

	mu       sync.Mutex // Guards the fields below.
	upstream string
	listener net.Listener
	closed   bool
	pairs    map[*pair]struct{}
	accepted int
	faults   faults
	changed  chan struct{} // Closed and replaced when faults changes.
	keeping  [2]int        // Connections with bytes that are held.
	free     [2]time.Time  // When each direction has bandwidth again.
}

// direction is up (from the client to the server) or down.
type direction int

const (
	up direction = iota
	down
)

// faults are the active faults of a link. The zero value has no fault.
type faults struct {
	held    [2]bool
	latency [2]time.Duration
	jitter  time.Duration
	rate    int // Bytes per second in each direction, over all connections. 0 means no bound.
	piece   int // The maximum bytes of one write. 0 means no bound.
}

// timeout bounds the wait for a taken port, and for a connection to the server.
const timeout = 10 * time.Second

// New opens a link to a server until the test ends.
func New(tb testing.TB, upstream string) *Link {
	tb.Helper()
	l := &Link{
		tb: tb, upstream: upstream,
		pairs: map[*pair]struct{}{}, changed: make(chan struct{}),
	}
	var problems []error
	for range 100 {
		// The ports are below the range for outgoing connections. No connection can take the port
		// of a cut link.
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(22_768)))
		err := l.listen(addr)
		if err == nil {
			l.Addr = addr
			tb.Cleanup(l.close)
			return l
		}
		problems = append(problems, err)
	}
	tb.Fatalf("no free port for a link: %v", errors.Join(problems...))
	return nil
}

// listen does nothing when the link already listens.
func (l *Link) listen(addr string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil || l.closed {
		return nil
	}
	listener, err := net.Listen("tcp", addr) //nolint:noctx // it ends at once
	if err != nil {
		return err
	}
	l.listener = listener
	l.work.Go(func() { l.accept(listener) })
	return nil
}

func (l *Link) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // The link is cut, or the test has ended.
		}
		client, ok := conn.(*net.TCPConn)
		if !ok {
			_ = conn.Close()
			continue
		}
		p := &pair{link: l, client: client, done: make(chan struct{})}
		if !l.adopt(p, listener) {
			p.end(false)
			continue
		}
		l.work.Go(p.serve)
	}
}

// adopt returns false for a connection that was accepted while its listener was closed.
func (l *Link) adopt(p *pair, by net.Listener) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != by {
		return false
	}
	l.pairs[p] = struct{}{}
	l.accepted++
	return true
}

func (l *Link) forget(p *pair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pairs, p)
}

// Redirect makes new connections lead to another server. Open connections stay with their server, as
// behind a TCP proxy or a Kubernetes Service whose target changes.
func (l *Link) Redirect(upstream string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.upstream = upstream
}

func (l *Link) target() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.upstream
}

// Live returns the number of open connections.
func (l *Link) Live() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pairs)
}

// Keeping returns the number of connections with an answer that NoAnswers or HalfOpen keeps.
func (l *Link) Keeping() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keeping[down]
}

// Accepted returns the number of all connections so far.
func (l *Link) Accepted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted
}

// close ends the link and waits for its goroutines.
func (l *Link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.Cut()
	l.work.Wait()
}
