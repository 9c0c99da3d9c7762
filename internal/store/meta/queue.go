package meta

// queue has the calls of a connection in order. Its length is bounded, because every call has a
// request and requests are bounded.
type queue struct {
	ring []*call // The length of ring is 0 or a power of two.
	head int
	n    int
}

func (q *queue) push(t *call) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = t
	q.n++
}

// front gives the oldest call, or nil.
func (q *queue) front() *call {
	if q.n == 0 {
		return nil
	}
	return q.ring[q.head]
}

// pop removes the oldest call. The queue must not be empty.
func (q *queue) pop() *call {
	t := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return t
}

func (q *queue) grow() {
	ring := make([]*call, max(16, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = ring, 0
}
