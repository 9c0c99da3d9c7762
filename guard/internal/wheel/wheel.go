package wheel

import (
	"iter"
	"time"
)

const (
	// lead is how far ahead of the present entries leave the levels for the ring,
	// in ticks: as far as the ring goes.
	lead = ringSlots - 1
	// slack is how much of the lead must be left when Next asks for that. To move a
	// million entries takes a fifth of a second, and there are two.
	slack = ringSlots / 2
	// batch is how many entries move down in one piece. Timers holds its lock for
	// that long: tens of microseconds, when each entry is a cache miss or two.
	batch = 256
)

// Wheel keeps entries in the order of their departures. Times are durations since an origin that
// the caller chooses; the wheel starts at the origin. The zero Wheel is ready, takes 73 KiB, and
// must not be copied after use. A Wheel is not safe for concurrent use; Timers is.
//
// Add and Remove take constant time. An entry that departs within four seconds stays in its
// slot. A later entry moves down level by level: at most three times for a wait of four minutes,
// and four times for four hours.
type Wheel struct {
	// now is the present tick: everything before it has fired.
	now   int64
	count int
	// near has the entries up to the tick of far, the horizon, and far the others.
	// All of one tick are in one list, in the order in which they were added. The
	// horizon is at most lead ahead of now, and never goes back.
	near ring
	far  levels
}

// Len gives the number of entries in the wheel.
func (w *Wheel) Len() int { return w.count }

// Add puts e into the wheel, with its departure. A past departure counts as one in the present
// tick. An entry that is already in the wheel is removed first. The entry must not be in another
// wheel that another goroutine uses.
func (w *Wheel) Add(e *Entry, at time.Duration) {
	if e.wheel != nil {
		e.wheel.Remove(e)
	}
	e.wheel, e.tick = w, max(tickAfter(at), w.now)
	w.count++
	if w.far.holds(e.tick) {
		w.far.add(e)
	} else {
		w.near.add(e)
	}
}

// Remove takes e out of the wheel. It reports false when e is not in it: it was
// yielded or removed, or never added.
func (w *Wheel) Remove(e *Entry) bool {
	if e.wheel != w {
		return false
	}
	if w.far.holds(e.tick) {
		w.far.remove(e)
	} else {
		w.near.remove(e)
	}
	e.wheel = nil
	w.count--
	return true
}

// Advance moves the time to now and yields each entry with a departure by then, rounded up to
// the tick. Entries of earlier ticks come first. Entries of one tick come in the order in which
// they were added. A time before that of an earlier call has no effect.
//
// A yielded entry is no longer in the wheel. The loop may add and remove entries, and also gets
// new entries that are already due. When a loop ends early, the next call yields the remaining
// entries.
func (w *Wheel) Advance(now time.Duration) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for {
			e := w.Pop(now)
			if e == nil || !yield(e) {
				return
			}
		}
	}
}

// Pop is one step of Advance: it removes and gives the first entry that is due at now, or gives
// nil without one.
func (w *Wheel) Pop(now time.Duration) *Entry {
	for {
		if e, more := w.step(tickAt(now), batch); !more || e != nil {
			return e
		}
	}
}

// Next gives the time at which Advance should be called next; ok is false when the
// wheel is empty. Until then nothing is due. Then something is, or entries that
// are due some seconds later move down.
func (w *Wheel) Next() (at time.Duration, ok bool) {
	if w.count == 0 {
		return 0, false
	}
	if w.far.moving > 0 {
		return timeOf(w.now), true
	}
	next, near := w.near.first(w.now)
	if _, tick, far := w.far.first(); far && (!near || tick-slack < next) {
		next = max(tick-slack, w.now)
	}
	return timeOf(next), true
}

// step does the next batch of work up to a tick: it removes one due entry or, without one, moves
// up to most entries down. When no work is left, it moves the time to the tick and reports false
// for more.
//
// So a due entry never waits for entries that are not due: these have seconds left.
func (w *Wheel) step(until int64, most int) (e *Entry, more bool) {
	until = max(until, w.now)
	if tick, ok := w.near.first(w.now); ok && tick <= until {
		w.now = tick
		e = w.near.head(tick)
		w.Remove(e)
		return e, true
	}
	if w.far.moving == 0 {
		level, tick, ok := w.far.first()
		if !ok || tick > until+lead {
			w.now, w.far.tick = until, until+lead
			return nil, false
		}
		// At this tick no entry is near, so the ring can start here.
		w.now = min(until, tick)
		w.far.tick, w.far.moving = tick, level
	}
	if w.far.moveDown(most) {
		w.near.put(w.far.tick, w.far.take())
	}
	return nil, true
}

// skip moves the time and the horizon to a tick, unless there is work before. Entries that are
// added later are then near, and need not move.
func (w *Wheel) skip(to int64) {
	if tick, ok := w.near.first(w.now); w.far.moving > 0 || to < w.now || ok && tick <= to {
		return
	}
	horizon := to + lead
	if _, tick, ok := w.far.first(); ok {
		if tick <= to {
			return
		}
		horizon = min(horizon, tick-1)
	}
	w.now, w.far.tick = to, horizon
}
