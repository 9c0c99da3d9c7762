package wheel

// Entry is one waiting item. The caller owns the Entry, for example as a field of its own type,
// so Add and Remove allocate nothing. The zero Entry is ready. An Entry is in one wheel at a
// time, and must not be copied while it is in a wheel.
type Entry struct {
	// Timers calls Fire at the departure; a Wheel does not call it. Fire must be quick, because all
	// other due entries wait for it: it should only send on a channel with free capacity. Fire may
	// start and stop entries, including its own. A nil Fire does nothing. Fire must not change while
	// the entry waits.
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

// remove takes an entry out of this list. A removed entry has no pointers, so it keeps no other
// entry from being collected.
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
