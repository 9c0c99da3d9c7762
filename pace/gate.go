package pace

import "sync/atomic"

// gate is the number of open units for callers, while no request waits. The units are valid within
// one slot of time. A gate is one word, so that taking units is one compare-and-swap.
//
//	bits 24-63  the number of the slot, by the monotonic clock
//	bits  0-23  units
//
// A slot is 2^20 ns, about a millisecond. A caller that finds another slot, or too few units, takes
// the lock and opens the gate for the current slot. A slot across the edge of a window is never
// opened. So a time that was read before the edge takes nothing from the next window.
type gate struct {
	_    [64]byte // The word has a line of the cache to itself.
	word atomic.Uint64
	_    [56]byte
}

const (
	slotBits = 20
	unitBits = 24
	slotNs   = 1 << slotBits
	maxUnits = 1<<unitBits - 1
)

// take takes n units, at least 1, at the time now.
func (g *gate) take(now, n int64) bool {
	if n > maxUnits {
		return false
	}
	for {
		word := g.word.Load()
		if word>>unitBits != uint64(now)>>slotBits || int64(word&maxUnits) < n {
			return false
		}
		if g.word.CompareAndSwap(word, word-uint64(n)) {
			return true
		}
	}
}

// close takes back what is left.
func (g *gate) close() (left int64) {
	if g.word.Load() == 0 {
		return 0
	}
	return int64(g.word.Swap(0) & maxUnits)
}

// open opens the gate with some of the units, for the slot of now, and gives their number. The slot
// must begin at or after from and end at or before until.
func (g *gate) open(now, from, until, units int64) int64 {
	slot := now >> slotBits
	if units <= 0 || slot == 0 || slot<<slotBits < from || (slot+1)<<slotBits > until {
		return 0
	}
	units = min(units, maxUnits)
	g.word.Store(uint64(slot)<<unitBits | uint64(units))
	return units
}
