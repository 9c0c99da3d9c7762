package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/ahead"
)

// lingering is how long the server reads and discards the rest of an unwanted request
// body. Closing earlier would send a TCP reset, which can destroy our response before
// the client reads it.
const lingering = time.Second

// body reads the request body that a client sends. The total time is not bounded, but
// each read times out after idle. failure remembers why reading failed, because an
// upload that the client breaks off is not an upstream failure. The transport may read
// from a goroutine other than the handler's.
type body struct {
	io.ReadCloser

	from       connection // nil in tests without a connection
	request    *http.Request
	idle       time.Duration
	trailer    http.Header   // filled when the body ends
	allowed    []string      // the trailer fields that are forwarded, sorted: there may be many
	stream     bool          // HTTP/1: one request at a time on the connection
	stallTimer *time.Timer   // runs while the upstream has not accepted the last bytes read; nil without a bound
	place      *place        // of the request; nil in tests without a Server
	ticket     *guard.Ticket // is told of each wait for the client; nil if no stage can end the request
	awaits     listened      // HTTP/1: told of each wait for the client; nil without a connection of package listen
	received   atomic.Int64  // bytes that were read
	failure    atomic.Int32
	ended      atomic.Bool // set when the end was read; later bytes on the connection belong to another request

	reading sync.Mutex   // held while the connection is read
	ahead   ahead.Buffer // what was read before the decision; guarded by reading
	replays bool         // Read begins with ahead; guarded by reading
	weight  int64        // the places that ahead takes; guarded by reading
	mu      sync.Mutex   // guards the fields below and the order of SetReadDeadline calls
	closed  bool
	stopped bool  // a stage has ended the request
	begun   bool  // the response has started, so the client may pause its upload for any time
	since   int64 // start of the current wait for the client, as in place.since; 0 when not waiting
}

// The ways in which reading a client's body fails.
const (
	bodyFine int32 = iota
	bodyBroken
	bodyStalled
	bodyFolded          // a trailer line continues the line before
	bodyUpstreamStalled // the upstream stopped reading
)

var errFolded = errors.New("proxy: a trailer line begins with a blank: send each field on one line")

// Read implements io.Reader. It begins with what was read before the decision.
func (b *body) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.replays && !b.over() {
		if n, err := b.replay(p); n > 0 || err != nil {
			return n, err
		}
	}
	return b.receive(p)
}

// receive reads from the client. After the last read it clears the deadline, because the
// server keeps reading to notice a disconnected client. The caller holds reading.
func (b *body) receive(p []byte) (int, error) {
	if !b.begin() {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.ticket != nil {
		b.ticket.Receiving(true)
	}
	n, err := b.ReadCloser.Read(p)
	b.received.Add(int64(n))
	if b.ticket != nil {
		b.ticket.Receiving(false)
	}
	b.read(n, err)
	// On HTTP/2, a deadline that expires ends the stream even when no Read is pending.
	if b.from != nil && b.idle > 0 && (err != nil || !b.stream) {
		_ = b.from.SetReadDeadline(time.Time{})
	}
	if err == nil {
		return n, nil
	}
	switch {
	case errors.Is(err, io.EOF):
		b.ended.Store(true)
		b.filterTrailer()
		if connOf(b.request).isMalformed(b.request) {
			b.failure.Store(bodyFolded)
			return n, errFolded
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		if !b.interrupted() {
			b.failure.Store(bodyStalled)
		}
	default:
		b.failure.Store(bodyBroken)
	}
	return n, err
}

// AtHand returns how many bytes have arrived already. A Read of as many does not wait.
func (b *body) AtHand() int {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.replays {
		return b.ahead.Len()
	}
	if from, ok := b.ReadCloser.(interface{ AtHand() int }); ok {
		return from.AtHand()
	}
	return 0
}

// stopWith ends the reading when a stage ends ctx, the context of the request. Without this, net/http's
// transport waits for the read before it gives up the request. release ends the effect.
func (b *body) stopWith(ctx context.Context) (release func() bool) {
	t := b.ticket
	return context.AfterFunc(ctx, func() {
		if !t.Stopped() {
			return // The client's connection has failed, which the read itself reports.
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.stopped = true; b.from != nil && !b.closed && !b.ended.Load() {
			_ = b.from.SetReadDeadline(time.Now())
		}
	})
}

// interrupted reports whether a stage has ended the reading.
func (b *body) interrupted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped
}

// failureOf returns how reading failed. broken says that the server canceled the request
// because of the client's connection. The server cancels before a Read in progress returns,
// so failureOf waits for that Read, which is about to fail.
func (b *body) failureOf(broken bool) int32 {
	if failure := b.failure.Load(); failure != bodyFine || !broken {
		return failure
	}
	b.reading.Lock()
	defer b.reading.Unlock()
	return b.failure.Load()
}

// failed reports whether the client did not send its body correctly. A nil body means
// that the request has none.
func (b *body) failed() bool {
	if b == nil {
		return false
	}
	failure := b.failure.Load()
	return failure != bodyFine && failure != bodyUpstreamStalled
}

// filterTrailer removes all trailer fields that are not allowed.
func (b *body) filterTrailer() {
	for name := range b.trailer {
		if _, allowed := slices.BinarySearch(b.allowed, name); !allowed {
			delete(b.trailer, name)
		}
	}
}

// read ends the wait for the client and starts the upstream's time to accept the bytes.
// The transport may read the end before it writes the last bytes; the trace in watch
// stops the timer in that case.
func (b *body) read(n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopWaiting()
	if b.stallTimer != nil && !b.closed && (n > 0 || errors.Is(err, io.EOF)) {
		b.stallTimer.Reset(b.idle)
	}
}

// begin starts the client's time to send the next bytes, unless the body is closed.
// Until the response starts, the server may evict a request that waits for its client.
// Afterwards the server keeps the request, because a bidirectional stream may be silent.
func (b *body) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stallTimer != nil {
		b.stallTimer.Stop()
	}
	if b.closed || b.stopped {
		return false
	}
	now := time.Now()
	if b.from != nil && b.idle > 0 {
		_ = b.from.SetReadDeadline(now.Add(b.idle))
	}
	if !b.begun {
		b.since = b.place.startBodyWait(now)
		if b.awaits != nil {
			b.awaits.Await(now)
		}
	}
	return true
}

// answered notes that the response has started.
func (b *body) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = true
	b.stopWaiting()
}

// stopWaiting ends the wait for the client. The caller holds mu.
func (b *body) stopWaiting() {
	b.place.endBodyWait(b.since)
	b.since = 0
	if b.awaits != nil {
		b.awaits.Busy()
	}
}

// end is called when the handler returns. It interrupts a pending Read and makes later
// ones fail, because the connection may soon serve another request. The server then
// discards the rest of the body for up to lingering and closes the connection.
func (b *body) end() {
	b.mu.Lock()
	b.closed = true
	b.stopWaiting()
	complete := b.from == nil || b.ended.Load()
	if !complete {
		_ = b.from.SetReadDeadline(time.Now())
	}
	b.mu.Unlock()
	if b.from == nil {
		b.release()
		return
	}
	// A Read clears the deadline when it ends. After the end of the body a Read does not block.
	b.reading.Lock()
	defer b.reading.Unlock()
	b.drop()
	if !complete && b.stream && !b.ended.Load() { // After the end of the body the server reads without a deadline.
		_ = b.from.SetReadDeadline(time.Now().Add(lingering))
	}
}
