package queue

import (
	"time"

	"github.com/headgate/headgate"
)

// Slot is a departure that a store has booked. The queue owns it.
type Slot struct {
	// At is the departure, and Units what the booking has taken, at least 1.
	At    time.Duration
	Units int64
	// Receipt gives the booking back to its store.
	Receipt headgate.Receipt

	used       int64 // of the units, from the first on
	next, prev *Slot
}

func (s *Slot) left() int64 { return s.Units - s.used }

// slots is a list of slots in the order of their departures.
type slots struct {
	first, last *Slot
	count       int
	units       int64 // that are left in all of them
}

// insert puts s where its departure belongs, and gives the number of units from there
// on, those of s included. Decisions arrive nearly in order: it looks from the end.
func (l *slots) insert(s *Slot) (from int64) {
	prev := l.last
	from = s.left()
	for prev != nil && prev.At > s.At {
		from += prev.left()
		prev = prev.prev
	}
	s.prev, s.next = prev, l.first
	if prev != nil {
		s.next = prev.next
		prev.next = s
	} else {
		l.first = s
	}
	if s.next != nil {
		s.next.prev = s
	} else {
		l.last = s
	}
	l.count++
	l.units += s.left()
	return from
}

func (l *slots) remove(s *Slot) {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		l.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		l.last = s.prev
	}
	s.next, s.prev = nil, nil
	l.count--
	l.units -= s.left()
}

// consume uses the first n units, which are there. It gives the receipt of a slot that
// these are all units of.
func (l *slots) consume(n int64) (whole headgate.Receipt) {
	if s := l.first; s != nil && s.used == 0 && s.Units == n {
		whole = s.Receipt
	}
	for s := l.first; s != nil && n > 0; s = l.first {
		some := min(n, s.left())
		n -= some
		if some == s.left() {
			l.remove(s)
			continue
		}
		s.used += some
		l.units -= some
	}
	return whole
}
