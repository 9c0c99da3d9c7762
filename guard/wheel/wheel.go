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

// Wheel keeps entries in the order of their departures. Times are durations since
// an origin that the caller chooses, at which the wheel starts. The zero Wheel is
// ready, takes 73 KiB, and must not be copied once used. It is not safe for
// concurrent use: Timers is.
//
// Add and Remove take constant time. What departs within four seconds stays where
// it was added; what departs later moves down level by level: at most three times
// when it waits for four minutes, four times for four hours.
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

// Add puts e into the wheel, to depart at a time. A departure that has passed
// counts as one of the present tick. An entry that is in the wheel already is
// taken out first; it must not be in another one that somebody else is using.
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

// Advance moves the time on to now and yields each entry whose departure has come
// by then, rounded up to the tick: those of an earlier tick first, and those of
// one tick in the order in which they were added. A time before that of an earlier
// call counts as that one.
//
// Each entry is out of the wheel when it is yielded. The loop may add and remove
// entries; what it adds for a time that has come, it meets again. What a loop that
// ends early leaves is yielded by the next one.
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

// Pop is one step of Advance: it takes out the first entry that is due at now and
// gives it, or nil when there is none.
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

// step does the next piece of work up to a tick: it takes out one entry that is
// due; when none is, it moves up to most entries down. It gives more as false,
// and moves the time on to the tick, when nothing is left to do.
//
// So what is due never waits for what is not, however much that is: there are
// seconds left for it.
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
		// When this tick has come, nothing is near: the ring is free to begin with it.
		w.now = min(until, tick)
		w.far.tick, w.far.moving = tick, level
	}
	if w.far.moveDown(most) {
		w.near.put(w.far.tick, w.far.take())
	}
	return nil, true
}

// skip moves the time on to a tick, unless there is something to do on the way,
// and the horizon with it. What is added then is near, and need not move.
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
