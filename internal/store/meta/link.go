package meta

import (
	"math"
	"net"
	"sync"
	"sync/atomic"
)

// link is one of a Client's connections, through all times it is made anew.
type link struct {
	client *Client
	// load is how many requests wait here; far more than ever wait where asking is of no use.
	load atomic.Int64
	// reads counts what has come, for who looks whether anything moves.
	reads atomic.Uint64
	// wake tells the writer that there is something to write.
	wake chan struct{}

	mu      sync.Mutex
	state   state
	cause   error // Why it is down.
	pending []byte
	calls   queue
	waiting int // Requests in calls.
	number  uint32

	// Places in all that was ever queued to be written: its end, how far the writer has
	// taken it, and how far the network has.
	queued, handed, written uint64
}

// state says what an asker finds.
type state uint8

const (
	idle    state = iota // Nobody has asked yet: the first who does connects.
	dialing              // Askers wait for the connection.
	up
	down // Askers are told why at once. It is being tried again meanwhile.
	shut
)

// unloved is the load of a connection that is down: any other is chosen before it.
const unloved = math.MaxInt64

func newLink(c *Client) *link { return &link{client: c, wake: make(chan struct{}, 1)} }

// enqueue puts requests where the writer finds them, and t where the reader does. It
// gives the place of their first byte, or why they cannot be asked.
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

// open tells why n requests cannot be asked now. The first who asks starts the link.
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

// mayHaveSent reports whether the byte at start has been taken by the writer.
func (l *link) mayHaveSent(start uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return start < l.handed
}

// close lets nobody ask any more. What waits fails when the connection ends.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = shut
	l.load.Store(unloved)
}

// hand gives the writer all that waits to be written, and takes back what it was given before.
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

// head gives the call whose answer comes next, or nil if nothing was asked.
func (l *link) head() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.calls.front(); t != nil && t.start < l.handed {
		return t
	}
	return nil
}

// pop forgets the call whose answer has come.
func (l *link) pop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting -= len(l.calls.pop().asked)
	if l.state == up {
		l.load.Store(int64(l.waiting))
	}
}

// standing tells whether the server owes an answer, and a number that changes when
// the oldest call gets further. What is written for others is no sign of life: the
// network takes it although nobody reads.
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

// drop fails all that waits, and changes the state. Nobody writes or reads meanwhile.
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

// wrote notes that the network has taken n more bytes.
func (l *link) wrote(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written += uint64(n)
}

// watched counts what is read of a connection.
type watched struct {
	net.Conn

	reads *atomic.Uint64
}

// Read reads, and notes that something came.
func (w watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > 0 {
		w.reads.Add(1)
	}
	return n, err
}
