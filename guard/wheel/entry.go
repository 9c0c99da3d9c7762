package wheel

// Entry is one thing that waits. It is owned by the caller, by itself or as a
// field of what waits, so that nothing is allocated to add or to remove it. The
// zero Entry is ready. It is in one wheel at a time, and must not be copied while
// it is.
type Entry struct {
	// Fire is called by Timers when the departure has come; a Wheel does not call
	// it. It must be quick, since all that are due wait for it: send on a channel
	// that has room, and no more. It may start and stop entries, its own included.
	// Nil calls nothing. It must not be changed while the entry waits.
	Fire func()

	// wheel is the wheel that the entry is in, nil for none.
	wheel      *Wheel
	next, prev *Entry
	tick       int64
	// slot is the number of the entry's list in the levels, while it is there.
	slot uint16
}

// list is a doubly linked list of entries, the longest there first.
type list struct{ first, last *Entry }

func (l *list) append(e *Entry) {
	e.prev = l.last
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
}

// remove takes out an entry of this list. What was removed points nowhere: it
// keeps no other entry from being collected.
func (l *list) remove(e *Entry) {
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.next, e.prev = nil, nil
}
