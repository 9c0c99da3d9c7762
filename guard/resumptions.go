package guard

import "sync"

// resumptions continues requests that wait without a goroutine, after a stage has resumed them.
// One goroutine continues them in order. A request may end at once and resume the next one;
// without this queue, such a chain would fill the stack.
type resumptions struct {
	mu      sync.Mutex
	queued  []resumption // at most one for each request that a stage holds
	taken   int          // of queued
	running bool
}

// resumption is a request that continues, unless it has ended meanwhile.
type resumption struct {
	ticket *Ticket
	turn   uint64
}

// add continues a request before add returns. If a call of add is in progress, perhaps further
// up on this stack, that call continues the request.
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
		if !finished { // A stage has panicked. The requests behind continue.
			r.run()
		}
	}()
	for next, more := r.next(); more; next, more = r.next() {
		next.ticket.advance(next.turn)
	}
	finished = true
}

// next removes the first resumption. The array is reused when half of it has been taken.
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
