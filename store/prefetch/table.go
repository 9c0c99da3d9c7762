package prefetch

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// ways is how many places a key may stand in: with the lock, their tags fill a cache line.
	ways = 7
	// maxOps is how many windows of one key are remembered together.
	maxOps = 4
)

// shape says which windows and policies are counted under a key together: the
// policy's number and the window's, and 0 from the last on.
type shape [maxOps]uint64

// set is where some keys have their places, under one lock that is held for one decision.
type set struct {
	held atomic.Uint32
	// forgot counts calls of Forget: what was granted before one is void. lifted counts
	// those of Return too: what was refused before one may pass.
	forgot, lifted uint16
	tags           [ways]uint64
	glances        glances
	places         [ways]place
}

// A held lock is looked at again after a pause that doubles, so that several
// processors on one key leave its line to the one that works.
const (
	firstPause = 512
	maxPause   = 32768
)

func (t *set) lock() {
	if !t.held.CompareAndSwap(0, 1) {
		t.lockSlow()
	}
}

func (t *set) lockSlow() {
	for pause := firstPause; ; pause *= 2 {
		for range pause {
			// The lock's line is left alone meanwhile.
		}
		if t.held.Load() == 0 && t.held.CompareAndSwap(0, 1) {
			return
		}
		if pause >= maxPause {
			runtime.Gosched()
			pause = firstPause
		}
	}
}

func (t *set) unlock() { t.held.Store(0) }

// table is a fixed array of sets.
type table struct{ sets []set }

func newTable(keys int) table {
	return table{sets: make([]set, (keys+ways-1)/ways)}
}

// setOf gives the set of a tag.
func (t *table) setOf(tag uint64) *set {
	i, _ := bits.Mul64(tag, uint64(len(t.sets)))
	return &t.sets[i]
}

// find gives the place of a key and shape, or nil. The lock is held.
func (t *set) find(tag uint64, sh *shape) *place {
	for i := range t.tags {
		if t.tags[i] == tag && t.places[i].shape == *sh {
			return &t.places[i]
		}
	}
	return nil
}

// placeFor finds a place or makes room for it: the place that would be missed least
// is given away, of equal ones that which was asked for longest ago. The lock is held.
func (s *Store) placeFor(t *set, tag uint64, sh *shape, hold, now time.Duration) *place {
	if p := t.find(tag, sh); p != nil {
		return p
	}
	best, worth := 0, t.worth(0, now)
	for i := 1; i < ways; i++ {
		if w := t.worth(i, now); w < worth || w == worth && t.places[i].since < t.places[best].since {
			best, worth = i, w
		}
	}
	p := &t.places[best]
	s.retire(p)
	t.tags[best] = tag
	*p = place{shape: *sh, hold: hold, since: now, low: -1}
	return p
}

// worth says how much place i would be missed: 0 is not at all.
func (t *set) worth(i int, now time.Duration) int {
	p := &t.places[i]
	switch {
	case t.tags[i] == 0:
		return 0
	case p.left(now) > 0 || p.flying:
		return 3
	case now < p.said.until:
		return 2
	default:
		return 1
	}
}

// retire counts what a place held when it makes room.
func (s *Store) retire(p *place) {
	for i := range p.stashes {
		s.closeStash(&p.stashes[i])
	}
	s.counts.denied.Add(p.refused)
	p.refused = 0
}
