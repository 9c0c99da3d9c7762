package meta

import "sync/atomic"

// call is one Do in progress. Its caller waits on done, and only the connection's reader writes to
// the call. The reader finishes the call and the caller leaves it. The second of the two returns it to
// the pool.
type call struct {
	asked   []asked
	answers []answer
	// arena holds the values of all answers.
	arena []byte
	stats map[string]string

	// start and end are the positions of its bytes among all bytes queued on the connection.
	start, end uint64
	err        error
	sent       bool
	// refused: an answer says that the server cannot do requests now.
	refused bool

	state atomic.Uint32
	done  chan struct{}
}

// asked is the part of a request that a reader needs.
type asked struct {
	kind   Kind
	number uint32
}

// answer is a Response before it is copied to the caller.
type answer struct {
	status   Status
	from, to int // The position of the value in the arena.
	cas      uint64
	number   uint64
	message  string
}

// The states of a call.
const (
	waiting = iota
	finished
	left
)

// Larger calls are not kept.
const (
	keepRequests = 64
	keepBytes    = 64 << 10
)

func newCall() *call { return &call{done: make(chan struct{}, 1)} }

// take gives an empty call for n requests.
func (c *Client) take(n int) *call {
	t, ok := c.calls.Get().(*call)
	if !ok || cap(t.answers) < n {
		t = newCall()
		t.asked, t.answers = make([]asked, 0, n), make([]answer, 0, n)
	}
	t.asked, t.answers, t.arena = t.asked[:0], t.answers[:n], t.arena[:0]
	clear(t.answers)
	t.refused = false
	t.state.Store(waiting)
	return t
}

// release keeps an unused call.
func (c *Client) release(t *call) {
	if cap(t.answers) > keepRequests || cap(t.arena) > keepBytes {
		return
	}
	t.stats, t.err, t.sent = nil, nil, false
	c.calls.Put(t)
}

// leave reports whether the caller may leave without an answer. If not, the answer has arrived.
func (t *call) leave() bool { return t.state.CompareAndSwap(waiting, left) }

// finish wakes the caller, or releases the call if the caller has left.
func (c *Client) finish(t *call, sent bool, err error) {
	t.sent, t.err = sent, err
	if t.state.CompareAndSwap(waiting, finished) {
		t.done <- struct{}{}
		return
	}
	c.release(t)
}

// give copies the answers into the caller's responses.
func (t *call) give(responses []Response) {
	for i := range t.answers {
		a, r := &t.answers[i], &responses[i]
		r.Status, r.CAS, r.Number, r.Message = a.status, a.cas, a.number, a.message
		r.Value = append(r.Value[:0], t.arena[a.from:a.to]...)
	}
}
