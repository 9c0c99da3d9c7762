package meta

import (
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one of a Client's connections. It reconnects after a failure.
type link struct {
	client *Client
	// load is the number of waiting requests. For a connection that is down it is far larger.
	load atomic.Int64
	// reads counts the reads, to detect a stall.
	reads atomic.Uint64
	// left is when a connection was last closed because of the server's answers. It belongs to the reader.
	left time.Time
	// wake tells the writer that there are bytes to write.
	wake chan struct{}

	mu      sync.Mutex
	state   state
	cause   error // The reason why it is down.
	pending []byte
	calls   queue
	waiting int // The number of requests in calls.
	number  uint32

	// Positions in the stream of all queued bytes: its end, and how far the writer and the network
	// have come.
	queued, handed, written uint64
}

// state is the state of a link for new requests.
type state uint8

const (
	idle    state = iota // There was no request yet. The first one connects.
	dialing              // Requests wait for the connection.
	up
	down // Requests fail at once. The link is trying to connect.
	shut
)

// unloved is the load of a connection that is down: any other connection is chosen first.
const unloved = math.MaxInt64

func newLink(c *Client) *link { return &link{client: c, wake: make(chan struct{}, 1)} }

// enqueue gives requests to the writer, and t to the reader. It gives the position of their first
// byte, or the reason why they cannot be sent.
func (l *link) enqueue(t *call, requests []Request) (start uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(len(requests)); err != nil {
		return 0, err
	}
	before := len(l.pending)
	for i := range requests {
		r := &requests[i]
		l.number++
		t.asked = append(t.asked, asked{r.Kind, l.number})
		l.pending = appendRequest(l.pending, r, l.number)
	}
	t.start = l.queued
	l.queued += uint64(len(l.pending) - before)
	t.end = l.queued
	l.calls.push(t)
	l.waiting += len(requests)
	l.load.Store(int64(l.waiting))
	if before == 0 {
		signal(l.wake)
	}
	return t.start, nil
}

// open gives the reason why n requests cannot be sent now. The first request starts the link.
func (l *link) open(n int) error {
	switch l.state {
	case shut:
		return ErrClosed
	case down:
		return l.cause
	case idle:
		l.state = dialing
		l.client.group.Go(l.run)
	case dialing, up:
	}
	if l.waiting+n > l.client.config.MaxWaiting || len(l.pending) > MaxBytes {
		return ErrBusy
	}
	return nil
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// mayHaveSent reports whether the writer has taken the byte at start.
func (l *link) mayHaveSent(start uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return start < l.handed
}

// close refuses further requests. Waiting requests fail when the connection ends.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = shut
	l.load.Store(unloved)
}

// hand gives the writer all queued bytes, and takes back its previous buffer.
func (l *link) hand(used []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cap(used) > keepBatch {
		used = nil
	}
	batch := l.pending
	l.pending = used[:0]
	l.handed = l.queued
	return batch
}

// keepBatch is the largest buffer that is kept for the next batch, in bytes.
const keepBatch = 1 << 20

// head gives the call with the next answer, or nil without a waiting call.
func (l *link) head() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.calls.front(); t != nil && t.start < l.handed {
		return t
	}
	return nil
}

// pop removes the call that was answered.
func (l *link) pop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting -= len(l.calls.pop().asked)
	if l.state == up {
		l.load.Store(int64(l.waiting))
	}
}

// standing reports whether the server owes an answer. progress changes when the oldest call
// advances. Writes of later calls do not count: the network accepts them although the server does
// not read.
func (l *link) standing() (owed bool, progress uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.calls.front()
	if t == nil {
		return false, 0
	}
	return true, l.reads.Load() + min(l.written, t.end)
}

// become changes the state, unless the link is closed.
func (l *link) become(s state, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(s, cause)
}

func (l *link) turn(s state, cause error) {
	if l.state == shut {
		return
	}
	l.state, l.cause = s, cause
	l.load.Store(int64(l.waiting))
	if s == down {
		l.load.Store(unloved)
	}
}

// drop fails all waiting requests, and changes the state. The writer and the reader have ended.
func (l *link) drop(s state, cause error) {
	l.mu.Lock()
	calls, written := l.calls, l.written
	l.calls, l.waiting, l.pending = queue{}, 0, nil
	l.handed, l.written = l.queued, l.queued
	l.turn(s, cause)
	l.mu.Unlock()
	for calls.n > 0 {
		t := calls.pop()
		l.client.finish(t, t.start < written, cause)
	}
}

// wrote records n more written bytes.
func (l *link) wrote(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written += uint64(n)
}

// watched counts the reads of a connection.
type watched struct {
	net.Conn

	reads *atomic.Uint64
}

// Read reads, and counts the read.
func (w watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > 0 {
		w.reads.Add(1)
	}
	return n, err
}
