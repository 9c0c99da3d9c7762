package memory

import (
	"math"

	"github.com/headgate/headgate"
)

// placeFor gives the key of a turn a place. In order of preference: an unused place, a
// place with void state, and the place that becomes void soonest among those of keys that
// are not limited. It gives nil when there is none. The caller holds the lock of the shard.
// Places of other turns of the group are not evicted.
func (s *Store) placeFor(t *turn, group []turn) *place {
	run, sh := s.table.run(t.at), &s.table.shards[t.at.shard]
	var nearest *place
	least := headgate.Instant(math.MaxInt64)
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
		free := s.freeAt(p)
		if free <= t.now {
			s.release(p)
			p.claim(t.at, t.id, sh)
			return p
		}
		if free < least && !s.limited(p, t.now) {
			nearest, least = p, free
		}
	}
	if nearest == nil {
		return nil
	}
	s.evicted.Add(1)
	s.release(nearest)
	nearest.claim(t.at, t.id, sh)
	return nearest
}

func inGroup(p *place, group []turn) bool {
	for i := range group {
		if group[i].place == p {
			return true
		}
	}
	return false
}

// These bounds of one search for blocks delay a decision by at most about 10 µs.
const (
	sweptShards = 2
	sweptPlaces = 256
	evictions   = 8
)

// makeRoom frees blocks until n words can be lent. It frees the blocks of void states first,
// then evicts the states of keys that are not limited, the soonest void first. It searches
// the turn's shard and a few other shards, and gives the block or 0.
//
// makeRoom only tries the locks of other shards, so two searches never wait for each other.
// Pinned places stay: their turn has not ended.
func (s *Store) makeRoom(t *turn, n int) uint64 {
	if ref := s.sweep(t.at.shard, n); ref != 0 {
		return ref
	}
	for range sweptShards {
		at := s.hand.Add(1) % uint64(len(s.table.shards))
		if sh := &s.table.shards[at]; sh.tryLock() {
			ref := s.sweep(at, n)
			sh.unlock()
			if ref != 0 {
				return ref
			}
		}
	}
	return 0
}

// sweep frees blocks in some places of one shard. The caller holds the lock of the shard. The
// time is not before that of any state in the shard.
func (s *Store) sweep(shard uint64, n int) uint64 {
	now := s.clock.Now()
	run := s.table.places[shard*s.table.each : (shard+1)*s.table.each]
	if len(run) > sweptPlaces {
		from := int(s.hand.Add(1)*sweptPlaces) % len(run)
		run = run[from:min(from+sweptPlaces, len(run))]
	}
	for i := range run {
		if s.holdsBlock(&run[i]) && run[i].cell.Time <= now {
			s.release(&run[i])
		}
	}
	for range evictions {
		if ref := s.blocks.lend(n); ref != 0 {
			return ref
		}
		nearest := s.nearestBlock(run, now)
		if nearest == nil {
			return 0
		}
		s.evicted.Add(1)
		s.release(nearest)
	}
	return s.blocks.lend(n)
}

// nearestBlock gives the place with a block that becomes void soonest, among keys that are
// not limited.
func (s *Store) nearestBlock(run []place, now headgate.Instant) *place {
	var nearest *place
	least := pinned
	for i := range run {
		p := &run[i]
		if s.holdsBlock(p) && p.cell.Time < least && !s.limited(p, now) {
			nearest, least = p, p.cell.Time
		}
	}
	return nearest
}

func (s *Store) holdsBlock(p *place) bool {
	return p.tag != 0 && p.cell.Units != 0 && !s.planOf(p).InCell()
}
