package wheel

import "math/bits"

const (
	// digitBits is what one level stands for: a digit of a tick's number, so that
	// one word has a bit for each slot of a level.
	digitBits  = 6
	levelSlots = 1 << digitBits
	// levelCount is enough for every time.Duration, which is 44 bits of ticks:
	// nothing is too far ahead, and nothing has to be added again on the way.
	levelCount = 8
)

// levels hold the entries that depart after a tick. Each entry is at the highest digit in which
// its tick differs from that tick. So the higher digits are equal, and the slots in use lie
// after the tick's own slot. No level wraps around, and entries on a lower level depart before
// entries on a higher one.
type levels struct {
	tick int64
	// moving is the level of the slot at tick, with entries that are about to move down. 0 means
	// none.
	moving int
	// filled has a bit for each level that holds entries, and used for each slot.
	filled uint8
	used   [levelCount]uint64
	lists  [levelCount * levelSlots]list
}

// holds tells whether the entries of a tick are here, or have left.
func (f *levels) holds(tick int64) bool {
	return tick > f.tick || tick == f.tick && f.moving > 0
}

func (f *levels) add(e *Entry) {
	// In the moving slot it is behind those of its tick that have not moved yet.
	f.link(e, max(f.levelOf(e.tick), f.moving))
}

func (f *levels) remove(e *Entry) {
	l := &f.lists[e.slot]
	l.remove(e)
	if l.first == nil {
		f.clear(int(e.slot))
	}
}

// first gives the first slot that holds entries, and the tick at which it begins.
func (f *levels) first() (level int, tick int64, ok bool) {
	if f.filled == 0 {
		return 0, 0, false
	}
	level = bits.TrailingZeros8(f.filled)
	slot := int64(bits.TrailingZeros64(f.used[level]))
	shift := digitBits * level
	return level, f.tick>>(shift+digitBits)<<(shift+digitBits) | slot<<shift, true
}

// moveDown moves up to most entries of the moving slot to their new places, and reports whether
// the slot is empty. The entries keep their order: all entries of one tick are in one list
// before and after the move, and new entries are added to the moving slot.
func (f *levels) moveDown(most int) bool {
	if f.moving == 0 {
		return true
	}
	l := &f.lists[f.slotOf(f.tick, f.moving)]
	for ; most > 0 && l.first != nil; most-- {
		e := l.first
		f.remove(e)
		f.link(e, f.levelOf(e.tick))
	}
	if l.first != nil {
		return false
	}
	f.moving = 0
	return true
}

// take gives away all entries of the present tick.
func (f *levels) take() list {
	slot := f.slotOf(f.tick, 0)
	l := f.lists[slot]
	f.lists[slot] = list{}
	f.clear(slot)
	return l
}

// levelOf gives the highest digit in which a tick differs from the present one.
func (f *levels) levelOf(tick int64) int {
	return (bits.Len64(uint64(tick^f.tick)|1) - 1) / digitBits
}

// slotOf gives the number of the list for a tick on a level.
func (*levels) slotOf(tick int64, level int) int {
	return level<<digitBits | int(tick>>(digitBits*level)%levelSlots)
}

func (f *levels) link(e *Entry, level int) {
	slot := f.slotOf(e.tick, level)
	e.slot = uint16(slot)
	f.lists[slot].append(e)
	f.used[level] |= 1 << (slot % levelSlots)
	f.filled |= 1 << level
}

// clear notes that a slot is empty.
func (f *levels) clear(slot int) {
	level := slot >> digitBits
	f.used[level] &^= 1 << (slot % levelSlots)
	if f.used[level] == 0 {
		f.filled &^= 1 << level
	}
}
