package wheel

import (
	"iter"
	"math/bits"
	"time"
)

const (
	// digitBits is what one level stands for: a digit of a tick's number, so that
	// one word has a bit for each slot of a level.
	digitBits = 6
	slots     = 1 << digitBits
	// levels is enough for every time.Duration, which is 44 bits of ticks: nothing
	// is too far ahead, and nothing has to be brought nearer and added again.
	levels = 8

	// batch is how many entries move down in one piece. Timers holds its lock for
	// that long: a hundred microseconds, when each entry is a cache miss.
	batch = 1024
)

// Wheel keeps entries in the order of their departures. Times are durations since
// an origin that the caller chooses, at which the wheel starts. The zero Wheel is
// ready, takes 8 KiB, and must not be copied once used. It is not safe for
// concurrent use: Timers is.
//
// Add and Remove take constant time. An entry moves down at most once a level
// before it fires: three times when it waits for up to four minutes, four times up
// to four hours.
type Wheel struct {
	// tick is the present: everything before it has fired.
	tick  int64
	count int
	// moving is the level of a slot whose time has come and whose entries are
	// about to move down, 0 for none. It is the slot that tick points at.
	moving int
	// filled has a bit for each level that holds entries, and used for each slot.
	filled uint8
	used   [levels]uint64
	lists  [levels * slots]list
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
	e.wheel, e.tick = w, max(tickAfter(at), w.tick)
	w.count++
	level := w.levelOf(e.tick)
	if level < w.moving {
		level = w.moving // Behind those of its tick that have not moved down yet.
	}
	w.link(e, level)
}

// Remove takes e out of the wheel. It reports false when e is not in it: it was
// yielded or removed, or never added.
func (w *Wheel) Remove(e *Entry) bool {
	if e.wheel != w {
		return false
	}
	w.unlink(e)
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
// depart later move down a level, for less than one call a level and entry.
func (w *Wheel) Next() (at time.Duration, ok bool) {
	if w.moving > 0 {
		return timeOf(w.tick), w.count > 0
	}
	_, tick, ok := w.first()
	return timeOf(tick), ok
}

// step does the next piece of work up to a tick: it takes out one entry that is
// due, or moves up to batch entries down. It gives more as false, and moves the
// time on to the tick, when nothing is left to do.
func (w *Wheel) step(until int64, batch int) (e *Entry, more bool) {
	if w.moving > 0 {
		w.moveDown(batch)
		return nil, true
	}
	until = max(until, w.tick)
	level, tick, ok := w.first()
	if !ok || tick > until {
		w.tick = until
		return nil, false
	}
	w.tick = tick
	if level > 0 {
		w.moving = level
		return nil, true
	}
	e = w.lists[tick%slots].first
	w.Remove(e)
	return e, true
}

// skip moves the time on to a tick, unless there is something to do on the way.
// What is added then hangs as low as it can.
func (w *Wheel) skip(to int64) {
	if w.moving > 0 {
		return
	}
	if _, tick, ok := w.first(); !ok || tick > to {
		w.tick = max(w.tick, to)
	}
}

// first gives the first slot that holds entries, and the tick at which it begins.
//
// On each level the digits above are the same in every entry as in the present, so
// slots are in use only from the present one on: no level goes round, and a lower
// level comes before a higher one.
func (w *Wheel) first() (level int, tick int64, ok bool) {
	if w.filled == 0 {
		return 0, 0, false
	}
	level = bits.TrailingZeros8(w.filled)
	slot := int64(bits.TrailingZeros64(w.used[level]))
	shift := digitBits * level
	return level, w.tick>>(shift+digitBits)<<(shift+digitBits) | slot<<shift, true
}

// moveDown moves up to batch entries of the moving slot to the levels where they
// hang now that its time has come. They keep their order: all of one tick are in
// one list, before and after, and what is added meanwhile joins the moving slot.
func (w *Wheel) moveDown(batch int) {
	l := &w.lists[w.slotOf(w.tick, w.moving)]
	for ; batch > 0 && l.first != nil; batch-- {
		e := l.first
		w.unlink(e)
		w.link(e, w.levelOf(e.tick))
	}
	if l.first == nil {
		w.moving = 0
	}
}

// levelOf gives the highest digit in which a tick differs from the present.
func (w *Wheel) levelOf(tick int64) int {
	return (bits.Len64(uint64(tick^w.tick)|1) - 1) / digitBits
}

// slotOf gives the number of the list for a tick on a level.
func (*Wheel) slotOf(tick int64, level int) int {
	return level<<digitBits | int(tick>>(digitBits*level)%slots)
}

func (w *Wheel) link(e *Entry, level int) {
	slot := w.slotOf(e.tick, level)
	e.slot = uint16(slot)
	w.lists[slot].append(e)
	w.used[level] |= 1 << (slot % slots)
	w.filled |= 1 << level
}

func (w *Wheel) unlink(e *Entry) {
	l := &w.lists[e.slot]
	l.remove(e)
	if l.first != nil {
		return
	}
	level := e.slot >> digitBits
	w.used[level] &^= 1 << (e.slot % slots)
	if w.used[level] == 0 {
		w.filled &^= 1 << level
	}
}
