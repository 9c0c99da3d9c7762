package prefetch

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// ways is the number of places that a key may take. Their tags and the lock fill a cache line.
	ways = 7
	// maxOps is the number of windows of one key that are remembered together.
	maxOps = 4
)

// shape names the windows and policies that are counted together under a key. An entry is the
// number of the policy and of the window. Unused entries are 0.
type shape [maxOps]uint64

// set holds the places of some keys, under one lock that is held for one decision.
type set struct {
	held atomic.Uint32
	// forgot counts calls of Forget: grants from before a call are void. lifted counts calls of
	// Forget and Return: refusals from before a call may be outdated.
	forgot, lifted uint16
	tags           [ways]uint64
	glances        glances
	places         [ways]place
}

// A waiter polls a held lock after a pause that doubles. The cache line then stays with the
// processor that works on it.
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
			// The pause does not read the cache line of the lock.
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

// placeFor finds a place or evicts one: the place with the lowest worth, and among equal ones
// the place that was used longest ago. The caller holds the lock.
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

// worth gives the cost of evicting place i; 0 is free.
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

// retire adds the counters of a place that is evicted.
func (s *Store) retire(p *place) {
	for i := range p.stashes {
		s.closeStash(&p.stashes[i])
	}
	s.counts.denied.Add(p.refused)
	p.refused = 0
}
