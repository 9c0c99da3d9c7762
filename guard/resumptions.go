package guard

import "sync"

// resumptions lets requests without a goroutine go on that their stages have resumed. One
// goroutine takes them in order: a request may end at once and so resume the next, and a
// queue of them must not stand on one stack.
type resumptions struct {
	mu      sync.Mutex
	queued  []resumption // one at most for each request that a stage holds
	taken   int          // of queued
	running bool
}

// resumption is a request that goes on, unless it has ended meanwhile.
type resumption struct {
	ticket *Ticket
	turn   uint64
}

// add has a request go on: before add returns, unless a call of add is under way. That one
// then takes it, which may be further up on this stack.
func (r *resumptions) add(t *Ticket, turn uint64) {
	r.mu.Lock()
	r.queued = append(r.queued, resumption{t, turn})
	runs := !r.running
	r.running = true
	r.mu.Unlock()
	if runs {
		r.run()
	}
}

func (r *resumptions) run() {
	finished := false
	defer func() {
		if !finished { // A stage has panicked: the requests behind go on all the same.
			r.run()
		}
	}()
	for next, more := r.next(); more; next, more = r.next() {
		next.ticket.advance(next.turn)
	}
	finished = true
}

// next takes the first one out. The array is used again as soon as half of it is taken.
func (r *resumptions) next() (resumption, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running = r.taken < len(r.queued); !r.running {
		return resumption{}, false
	}
	next := r.queued[r.taken]
	if r.taken++; 2*r.taken >= len(r.queued) {
		rest := copy(r.queued, r.queued[r.taken:])
		clear(r.queued[rest:])
		r.queued, r.taken = r.queued[:rest], 0
	}
	return next, true
}
