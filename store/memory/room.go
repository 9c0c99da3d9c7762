package memory

import (
	"math"
	"sync/atomic"

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
		if inGroup(p, group) {
			continue
		}
		inCell, free := s.planOf(p).InCell(), s.freeAt(p)
		switch {
		case free <= t.now:
			s.release(p)
			p.claim(t.at, t.id, sh)
			return p
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
		s.placeless.Add(1)
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
		return sweptPlaces
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

// A search for blocks scans the places around the home of the key: reading one takes a few
// nanoseconds. Then it looks at the states that become void soonest. A look reads the block, and
// takes 0.1 to 0.3 µs. So a refused key costs at most 3 µs (BenchmarkRefusedWithoutBlocks). The first
// search, and one in deepEvery, looks at all these states and at those of another shard, for
// keys that are not limited. That takes up to 20 µs.
const (
	sweptPlaces = reach
	looks       = 2
	deepEvery   = 64
)

// makeRoom frees blocks until n words can be lent. It frees the blocks of void states first,
// then evicts the states of keys that are not limited, the soonest void first. It gives the
// block, or 0 and sets t.room.
//
// makeRoom only tries the lock of another shard, so two searches never wait for each other.
// Pinned places stay: their turn has not ended.
func (s *Store) makeRoom(t *turn, n int) uint64 {
	now := s.clock.Now() // Not before the time of any state.
	t.room = pinned
	most := s.looksAfter(&s.fruitless)
	ref := s.sweep(t, now, t.at.shard, t.at.home, n, most)
	if ref == 0 && most > looks {
		at := s.hand.Add(1)
		other := at % uint64(len(s.table.shards))
		if sh := &s.table.shards[other]; sh.tryLock() {
			ref = s.sweep(t, now, other, at*sweptPlaces%s.table.each, n, most)
			sh.unlock()
		}
	}
	if ref == 0 {
		s.fruitless.Add(1)
	} else {
		s.fruitless.Store(0)
	}
	if t.room == pinned { // The blocks are elsewhere. Within a period, unused ones become void.
		t.room = now.Add(t.plan.Policy.Limit.Per)
	}
	return ref
}

// sweep frees blocks in some places of one shard, and looks at most states. The caller holds the
// lock of the shard.
func (s *Store) sweep(t *turn, now headgate.Instant, shard, from uint64, n, most int) uint64 {
	run := s.table.places[shard*s.table.each : (shard+1)*s.table.each]
	var next [sweptPlaces]*place // By the time at which they become void.
	known, freed := 0, false
	for i := range min(uint64(len(run)), sweptPlaces) {
		p := &run[(from+i)%uint64(len(run))]
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
