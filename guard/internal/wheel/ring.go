package wheel

import "math/bits"

const (
	wordBits  = 64
	ringSlots = wordBits * wordBits
)

// ring holds the entries of the next four seconds, in a slot for each tick. The ring wraps
// around: its first slot is that of the present tick.
type ring struct {
	// filled has a bit for each word of used that is not 0, and used for each slot.
	filled uint64
	used   [wordBits]uint64
	lists  [ringSlots]list
}

func (r *ring) add(e *Entry) {
	r.lists[e.tick%ringSlots].append(e)
	r.mark(e.tick)
}

func (r *ring) remove(e *Entry) {
	l := &r.lists[e.tick%ringSlots]
	l.remove(e)
	if l.first != nil {
		return
	}
	word := e.tick % ringSlots / wordBits
	r.used[word] &^= 1 << (e.tick % wordBits)
	if r.used[word] == 0 {
		r.filled &^= 1 << word
	}
}

// put fills the slot of a tick, which is empty.
func (r *ring) put(tick int64, l list) {
	if l.first == nil {
		return
	}
	r.lists[tick%ringSlots] = l
	r.mark(tick)
}

// head gives the first entry of a tick.
func (r *ring) head(tick int64) *Entry { return r.lists[tick%ringSlots].first }

// first gives the first tick that has entries, from the present one on.
func (r *ring) first(now int64) (tick int64, ok bool) {
	word, bit := int(now%ringSlots/wordBits), int(now%wordBits)
	if ahead := r.used[word] >> bit; ahead != 0 {
		return now + int64(bits.TrailingZeros64(ahead)), true
	}
	if r.filled == 0 {
		return 0, false
	}
	// The words after this one come first, and last what is before now in this one.
	words := 1 + bits.TrailingZeros64(bits.RotateLeft64(r.filled, -word-1))
	slot := bits.TrailingZeros64(r.used[(word+words)%wordBits])
	return now + int64(words*wordBits-bit+slot), true
}

func (r *ring) mark(tick int64) {
	word := tick % ringSlots / wordBits
	r.used[word] |= 1 << (tick % wordBits)
	r.filled |= 1 << word
}
