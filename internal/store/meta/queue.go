package meta

// queue holds the calls of a connection in the order in which they were asked. What
// bounds it is that every call has a request, and requests are counted.
type queue struct {
	ring []*call // Its length is 0 or a power of two.
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

// pop removes the oldest call, which there must be.
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
