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

// Link forwards connections to one server. Its methods may be called from several
// goroutines; Heal, which can fail the test, only from the test's own.
type Link struct {
	// Addr is where clients connect to, for the link's whole life.
	Addr string

	tb       testing.TB
	upstream string
	work     sync.WaitGroup // All goroutines of the link.

	mu       sync.Mutex // Guards what follows.
	listener net.Listener
	closed   bool
	pairs    map[*pair]struct{}
	accepted int
	weather  weather
	changed  chan struct{} // Closed, and made anew, when the weather has changed.
	free     [2]time.Time  // When each direction has sent what it has taken on.
}

// direction is where bytes go: up from the client to the server, or down.
type direction int

const (
	up direction = iota
	down
)

// weather is what a link does to what passes. Its zero value is a link that is well.
type weather struct {
	held    [2]bool
	latency [2]time.Duration
	jitter  time.Duration
	rate    int // Bytes a second in each direction, over all connections; 0: no bound.
	piece   int // Bytes in one write at most; 0: no bound.
}

// patience is how long a port may be taken by another, and a server not answer.
const patience = 10 * time.Second

// New opens a link to a server's address, for as long as the test runs.
func New(tb testing.TB, upstream string) *Link {
	tb.Helper()
	l := &Link{
		tb: tb, upstream: upstream,
		pairs: map[*pair]struct{}{}, changed: make(chan struct{}),
	}
	var problems []error
	for range 100 {
		// Ports below those of outgoing connections: while a link is cut, none takes its port.
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(22_768)))
		err := l.listen(addr)
		if err == nil {
			l.Addr = addr
			tb.Cleanup(l.close)
			return l
		}
		problems = append(problems, err)
	}
	tb.Fatalf("no port for a link: %v", errors.Join(problems...))
	return nil
}

// listen does nothing when the link listens already.
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
			return // The link is cut, or the test at its end.
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

// adopt says no to a connection that was accepted while its listener was closed.
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

// Live is how many connections are open through the link.
func (l *Link) Live() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pairs)
}

// Accepted is how many connections there were in all, open ones too.
func (l *Link) Accepted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted
}

// close ends the link for good, and waits for all that it has started.
func (l *Link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.Cut()
	l.work.Wait()
}
