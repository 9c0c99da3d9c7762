package queue

import (
	"time"

	"github.com/headgate/headgate"
)

// Waiter is one request in one Queue. The caller owns it and must not copy it.
type Waiter struct {
	// Cost is the number of units that the request takes, at least 1.
	Cost int64
	// Owner is for the caller.
	Owner any
	// Receipt belongs to the slot that the waiter took when it went. It is empty when
	// the waiter took a part of a slot, or parts of several.
	Receipt headgate.Receipt

	number     uint64 // of its arrival; a waiter that arrived late for its place shares one
	next, prev *Waiter
}

// Queue holds the waiters and the booked slots of one key. It is made by New.
type Queue struct {
	pace Pace

	first, last *Waiter
	cost        int64 // of all waiters
	slots       slots
	arrived     uint64 // waiters so far
	turns       turns
}

// New makes an empty Queue of a pace.
func New(p Pace) Queue { return Queue{pace: p} }

// Pace gives the pace that the queue was made with.
func (q *Queue) Pace() Pace { return q.pace }

// Add lets w wait for the slot that was booked for it. Waiters that are promised later
// departures stay behind w: decisions may arrive out of order.
func (q *Queue) Add(w *Waiter, s *Slot) {
	before := q.slots.units - q.slots.insert(s)
	// Each waiter that the units from this slot on belong to stays behind w: its units
	// keep their times. ends is where the units of prev end.
	prev, ends := q.last, q.cost
	for prev != nil && ends > before {
		ends -= prev.Cost
		prev = prev.prev
	}
	q.link(w, prev)
	if w.next == nil {
		q.number(w)
		return
	}
	w.number = w.next.number
	q.turns.forget(w.number) // The waiters behind w had moved up, and w has not.
}

// Append lets w wait for spare units, of which there are at least w.Cost.
func (q *Queue) Append(w *Waiter) {
	q.link(w, q.last)
	q.number(w)
}

// number numbers the last waiter. Numbers never fall from one waiter to the next.
func (q *Queue) number(w *Waiter) {
	q.arrived++
	w.number = q.arrived
}

// Put adds a slot that has no waiter.
func (q *Queue) Put(s *Slot) { q.slots.insert(s) }

// Leave takes out a waiter that is in the queue. It does not go.
func (q *Queue) Leave(w *Waiter, now time.Duration) {
	units := w.Cost
	if w == q.first && q.pace.Spaced {
		// The units that have come were kept for w. Given out at once they would break
		// the spacing.
		units -= q.dropPassed(now)
	}
	if w != q.last {
		q.turns.leave(w, q.first, q.arrived, units)
	}
	q.unlink(w)
}

// Pop takes out the first waiter if its departure has come at now, and nil otherwise.
func (q *Queue) Pop(now time.Duration) *Waiter {
	at, waits := q.Next()
	if !waits || at > now {
		return nil
	}
	w := q.newest()
	q.turns.goes()
	w.Receipt = q.slots.consume(w.Cost)
	q.unlink(w)
	return w
}

// mostNewer bounds how many waiters are passed over to find the newest that may go.
const mostNewer = 256

// newest gives the waiter that goes next. It is the first one, unless many of the first
// have left: then it is the newest waiter to which one of these has left its turn.
func (q *Queue) newest() *Waiter {
	i := q.turns.find(q.first)
	if i < 0 {
		return q.first
	}
	t, w := q.turns.left[i], q.last
	for range mostNewer {
		if w == q.first {
			return w
		}
		if w.number <= t.arrived {
			break
		}
		w = w.prev
	}
	if w.number > t.arrived || w.Cost > min(t.units, q.first.Cost) {
		return q.first
	}
	q.turns.take(i)
	return w
}

// Next gives the departure of the first waiter; ok is false when no request waits.
func (q *Queue) Next() (at time.Duration, ok bool) {
	if q.first == nil {
		return 0, false
	}
	before := int64(0)
	for s := q.slots.first; s != nil && before < q.first.Cost; s = s.next {
		n := min(s.left(), q.first.Cost-before)
		if t := q.pace.departure(s, n, before); before == 0 || t > at {
			at = t
		}
		before += n
	}
	return at, true
}

// Spare gives the number of units that have no waiter.
func (q *Queue) Spare() int64 { return q.slots.units - q.cost }

// Promise gives the departure of a waiter of a cost that is appended, at the latest;
// ok is false when there are too few spare units.
func (q *Queue) Promise(cost int64) (at time.Duration, ok bool) {
	after := q.Spare() - cost
	if after < 0 {
		return 0, false
	}
	for s := q.slots.last; s != nil; s = s.prev {
		if after < s.left() {
			return q.pace.unit(s, s.left()-after), true
		}
		after -= s.left()
	}
	return 0, false
}

// TakeTail takes out the last slot if none of its units has a waiter or is used, and
// gives nil otherwise.
func (q *Queue) TakeTail() *Slot {
	s := q.slots.last
	if s == nil || s.used > 0 || q.Spare() < s.Units {
		return nil
	}
	q.slots.remove(s)
	return s
}

// Expire drops the units that have passed unused. Units that pass while a request
// waits are its own, so that nothing is dropped then.
func (q *Queue) Expire(now time.Duration) {
	if q.first == nil {
		q.dropPassed(now)
	}
}

// Slots gives the number of booked slots of which units are left, and End the time of
// the last unit.
func (q *Queue) Slots() int { return q.slots.count }

// End gives the time of the last unit, or 0 when there is none.
func (q *Queue) End() time.Duration {
	if s := q.slots.last; s != nil {
		return q.pace.unit(s, s.left())
	}
	return 0
}

// dropPassed drops the units whose time has passed, and gives their number.
func (q *Queue) dropPassed(now time.Duration) (dropped int64) {
	for s := q.slots.first; s != nil; s = q.slots.first {
		n := min(q.pace.passed(s, now), s.left())
		if n == 0 {
			break
		}
		q.slots.consume(n)
		dropped += n
	}
	return dropped
}

// link puts w behind prev, or first when prev is nil.
func (q *Queue) link(w, prev *Waiter) {
	w.prev, w.next = prev, q.first
	if prev != nil {
		w.next = prev.next
		prev.next = w
	} else {
		q.first = w
	}
	if w.next != nil {
		w.next.prev = w
	} else {
		q.last = w
	}
	q.cost += w.Cost
}

func (q *Queue) unlink(w *Waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.next, w.prev = nil, nil
	q.cost -= w.Cost
}
