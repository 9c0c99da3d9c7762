package memory

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// placeFor gives the key of a turn a place. In order of preference: an unused place, a
// place with void state, and the place that becomes void soonest among those of keys that
// are not limited. It gives nil when there is none, and sets t.room. The caller holds the lock
// of the shard. Places of other turns of the group are not evicted.
//
// Whether a state in a block is limited costs a read of the block. While searches fail, only one
// in deepEvery reads more than a few blocks, so a refused key is cheap.
func (s *Store) placeFor(t *turn, group []turn) *place {
	run, sh := s.table.run(t.at), &s.table.shards[t.at.shard]
	var nearest *place
	var next [reach]*place // States in blocks, by the time at which they become void.
	known, most := 0, s.looksAfter(&s.placeless)
	least := headgate.Instant(math.MaxInt64)
	t.room = least
	for i := range uint64(reach) {
		p := &run[(t.at.home+i)%uint64(len(run))]
		if p.tag == 0 {
			s.used.Add(1)
			p.claim(t.at, t.id, sh)
			return p
		}
		if p == t.beside || inGroup(p, group) {
			continue
		}
		inCell, free := s.planOf(p).InCell(), s.freeAt(p)
		switch {
		case free <= t.now:
			s.release(p)
			p.claim(t.at, t.id, sh)
			return p
		case t.at.tag&ages != 0: // An ended count evicts no other state.
		case inCell && free < least && s.mayEvict(t, p, t.now):
			nearest, least = p, free
		case !inCell:
			t.room = min(t.room, free)
			known = insert(next[:most], known, p)
		}
	}
	for _, p := range next[:known] {
		if p.cell.Time >= least {
			break
		}
		if s.mayEvict(t, p, t.now) {
			nearest = p
			break
		}
	}
	if nearest == nil {
		if t.at.tag&ages == 0 {
			s.placeless.Add(1)
		}
		return nil
	}
	s.placeless.Store(0)
	s.evicted.Add(1)
	s.release(nearest)
	nearest.claim(t.at, t.id, sh)
	return nearest
}

// mayEvict reports whether the key of p is not limited. Otherwise it notes when it will not be.
func (s *Store) mayEvict(t *turn, p *place, now headgate.Instant) bool {
	until := s.limitedUntil(p, now)
	if until > now {
		t.room = min(t.room, until, s.freeAt(p))
	}
	return until <= now
}

// looksAfter gives how many states a search looks at after so many failed ones.
func (s *Store) looksAfter(failed *atomic.Uint64) int {
	if failed.Load()%deepEvery == 0 {
		return reach
	}
	return looks
}

func inGroup(p *place, group []turn) bool {
	for i := range group {
		if group[i].place == p {
			return true
		}
	}
	return false
}

// A search for blocks first reads the places around the home of the key, and looks at the states
// that become void soonest. A look reads the block, and takes 0.1 to 0.3 µs. Then the search
// follows the hand of the blocks: each lent block names its place, so the time at which its state
// becomes void costs one read, wherever the place is. Retries of a key look at further blocks.
//
// The first search, and one in deepEvery, looks at many more states, for keys that are not limited.
const (
	looks     = 2
	deepEvery = 64
	// handReads bounds the live states that a search reads at the hand, and deepReads those of a
	// deep search, which also looks at deepLooks of them.
	handReads = 2
	deepReads = 256
	deepLooks = 4
	// mostFreed bounds the blocks that one search frees. Freed neighbours join: 512 of the smallest
	// blocks have a free block of 16 KiB.
	mostFreed = 1024
	// retrySoon is the RetryAfter when a search freed too few blocks, or found only blocks in use by
	// other turns.
	retrySoon = time.Millisecond
)

// makeRoom frees blocks until n words can be lent. It frees the blocks of void states and evicts
// the states of keys that are not limited. It gives the block, or 0 and sets t.room.
//
// makeRoom only tries the lock of another shard, so two searches never wait for each other.
// Pinned places stay: their turn has not ended.
func (s *Store) makeRoom(t *turn, n int) uint64 {
	now := s.clock.Now() // Not before the time of any state.
	t.room = pinned
	most := s.looksAfter(&s.fruitless)
	ref := s.sweep(t, now, n, most)
	if ref == 0 {
		ref = s.followHand(t, now, n, most > looks)
	}
	if ref == 0 {
		s.fruitless.Add(1)
	} else {
		s.fruitless.Store(0)
	}
	return ref
}

// sweep frees blocks around the home of the turn's key, and looks at most states.
func (s *Store) sweep(t *turn, now headgate.Instant, n, most int) uint64 {
	run := s.table.run(t.at)
	var next [reach]*place // By the time at which they become void.
	known, freed := 0, false
	for i := range uint64(reach) {
		p := &run[(t.at.home+i)%uint64(len(run))]
		if !s.holdsBlock(p) || p.cell.Time == pinned {
			continue
		}
		if p.cell.Time <= now {
			s.release(p)
			freed = true
			continue
		}
		t.room = min(t.room, p.cell.Time)
		known = insert(next[:most], known, p)
	}
	if freed {
		if ref := s.blocks.lend(n); ref != 0 {
			return ref
		}
	}
	for _, p := range next[:known] {
		if !s.mayEvict(t, p, now) {
			continue
		}
		s.evicted.Add(1)
		s.release(p)
		if ref := s.blocks.lend(n); ref != 0 {
			return ref
		}
	}
	return 0
}

// followHand frees blocks at the hand, and in a deep search looks at a few states. While it finds void states it goes
// on, up to mostFreed: each of these blocks was lent before, so a lent block costs a bounded
// time. t.room stays the time of the places around the home, if these hold blocks: the next search
// of the key reads them again.
func (s *Store) followHand(t *turn, now headgate.Instant, n int, deep bool) uint64 {
	near, reads, most, freed := t.room, handReads, 0, 0
	if deep {
		reads, most = deepReads, deepLooks
	}
	for reads > 0 && freed < mostFreed {
		ref, owner := s.blocks.next()
		if ref == 0 {
			break
		}
		looked, idle := s.freeBlock(t, now, ref, owner, most > 0)
		if looked {
			most--
		}
		if !idle {
			reads--
			continue
		}
		freed++
		if got := s.blocks.lend(n); got != 0 {
			return got
		}
	}
	switch {
	case freed > 0 || t.room == pinned:
		t.room = now.Add(retrySoon)
	case near != pinned:
		t.room = near
	}
	return 0
}

// freeBlock frees a block whose state is void or, if look is set, may be evicted. It reports
// whether it looked at the state, and whether it freed the block. An owner has the low 32 bits of
// the place's number, so a table above 128 GiB has several places to try.
func (s *Store) freeBlock(t *turn, now headgate.Instant, ref uint64, owner uint32, look bool) (looked, freed bool) {
	for at := uint64(owner); at < uint64(len(s.table.places)); at += 1 << 32 {
		sh := &s.table.shards[at/s.table.each]
		own := at/s.table.each == t.at.shard
		if !own && !sh.tryLock() {
			continue
		}
		p := &s.table.places[at]
		if s.holdsBlock(p) && p.cell.Units == ref && p.cell.Time != pinned {
			looked, freed = s.freeIdle(t, now, p, look)
		}
		if !own {
			sh.unlock()
		}
	}
	return looked, freed
}

// freeIdle is freeBlock for the block of p. The caller holds the lock of its shard.
func (s *Store) freeIdle(t *turn, now headgate.Instant, p *place, look bool) (looked, freed bool) {
	if p.cell.Time > now {
		t.room = min(t.room, p.cell.Time)
		if !look {
			return false, false
		}
		if !s.mayEvict(t, p, now) {
			return true, false
		}
		s.evicted.Add(1)
		looked = true
	}
	s.release(p)
	return looked, true
}

// insert adds p to the first known places of a list, in order of the time at which they become
// void. A full list drops the last one. It gives the new number of places.
func insert(list []*place, known int, p *place) int {
	at := known
	for at > 0 && list[at-1].cell.Time > p.cell.Time {
		at--
	}
	if at == len(list) {
		return known
	}
	known = min(known+1, len(list))
	copy(list[at+1:known], list[at:])
	list[at] = p
	return known
}

func (s *Store) holdsBlock(p *place) bool {
	return p.tag != 0 && p.cell.Units != 0 && !s.planOf(p).InCell()
}
