package meta

import "sync/atomic"

// call is one Do on its way. Until it is finished or left, its caller waits on done
// and the connection's reader alone writes to it. Who comes second, the reader that
// finishes or the caller that leaves, gives it back.
type call struct {
	asked   []asked
	answers []answer
	// arena holds the values of all answers.
	arena []byte
	stats map[string]string

	// start and end are where its bytes stand in all that the connection is to write.
	start, end uint64
	err        error
	sent       bool

	state atomic.Uint32
	done  chan struct{}
}

// asked is what a reader must know of a request.
type asked struct {
	kind   Kind
	number uint32
}

// answer is a Response before it is given to its caller.
type answer struct {
	status   Status
	from, to int // The value's place in the arena.
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

// Calls that have grown above these are not kept.
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
	t.state.Store(waiting)
	return t
}

// release keeps a call that nobody uses any more.
func (c *Client) release(t *call) {
	if cap(t.answers) > keepRequests || cap(t.arena) > keepBytes {
		return
	}
	t.stats, t.err, t.sent = nil, nil, false
	c.calls.Put(t)
}

// leave reports whether the caller may go without an answer. If not, the answer is there.
func (t *call) leave() bool { return t.state.CompareAndSwap(waiting, left) }

// finish wakes the caller, or gives the call back if it has left.
func (c *Client) finish(t *call, sent bool, err error) {
	t.sent, t.err = sent, err
	if t.state.CompareAndSwap(waiting, finished) {
		t.done <- struct{}{}
		return
	}
	c.release(t)
}

// give writes the answers into the caller's responses.
func (t *call) give(responses []Response) {
	for i := range t.answers {
		a, r := &t.answers[i], &responses[i]
		r.Status, r.CAS, r.Number, r.Message = a.status, a.cas, a.number, a.message
		r.Value = append(r.Value[:0], t.arena[a.from:a.to]...)
	}
}
