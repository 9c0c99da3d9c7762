package pace

import "github.com/headgate/headgate"

// waiter is a request that waits for units. A waiter takes 96 bytes.
type waiter struct {
	n        int64
	since    int64 // when it came
	deadline int64 // when it gives up, or never
	place    int   // in the heap of deadlines, -1 when it is not in it
	next     *waiter
	previous *waiter
	turn     uint32 // The number of waits of this waiter so far. A Ticket belongs to one wait.

	// tell is called once with the result, without the lock.
	tell func(at headgate.Instant, err error)
	// The arguments of tell, once decided.
	at  headgate.Instant
	err error
}

// queue has the waiters in first-come order, and by deadline in a heap.
type queue struct {
	first, last *waiter
	waiters     int
	units       int64 // that they wait for
	deadlines   []*waiter
}

func (q *queue) push(w *waiter) {
	w.previous, w.next, w.place = q.last, nil, -1
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.waiters++
	q.units += w.n
	if w.deadline != never {
		w.place = len(q.deadlines)
		q.deadlines = append(q.deadlines, w)
		q.up(w.place)
	}
}

func (q *queue) remove(w *waiter) {
	if w.previous == nil {
		q.first = w.next
	} else {
		w.previous.next = w.next
	}
	if w.next == nil {
		q.last = w.previous
	} else {
		w.next.previous = w.previous
	}
	w.previous, w.next = nil, nil
	w.turn++
	q.waiters--
	q.units -= w.n
	if w.place >= 0 {
		q.forget(w.place)
		w.place = -1
	}
}

// soonest returns the waiter with the earliest deadline.
func (q *queue) soonest() *waiter {
	if len(q.deadlines) == 0 {
		return nil
	}
	return q.deadlines[0]
}

// forget removes an entry from the heap. It frees memory when the heap has become much
// larger than its content.
func (q *queue) forget(place int) {
	end := len(q.deadlines) - 1
	moved := q.deadlines[end]
	q.deadlines[end] = nil
	q.deadlines = q.deadlines[:end]
	if place < end {
		q.deadlines[place] = moved
		moved.place = place
		q.down(place)
		q.up(moved.place)
	}
	if c := cap(q.deadlines); c > 1024 && end < c/8 {
		q.deadlines = append(make([]*waiter, 0, c/4), q.deadlines...)
	}
}

func (q *queue) up(place int) {
	h := q.deadlines
	w := h[place]
	for place > 0 {
		parent := (place - 1) / 2
		if h[parent].deadline <= w.deadline {
			break
		}
		h[place] = h[parent]
		h[place].place = place
		place = parent
	}
	h[place] = w
	w.place = place
}

func (q *queue) down(place int) {
	h := q.deadlines
	w := h[place]
	for {
		child := 2*place + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].deadline < h[child].deadline {
			child++
		}
		if h[child].deadline >= w.deadline {
			break
		}
		h[place] = h[child]
		h[place].place = place
		place = child
	}
	h[place] = w
	w.place = place
}
