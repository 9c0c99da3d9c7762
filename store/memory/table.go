package memory

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// place is half a cache line: one state of one key. It holds no pointer, so the
// collector has nothing to scan, however many keys there are.
//
// For the buckets, the fixed window and the ban the cell is the state itself. For the
// log and the sliding window Units is the block that holds the state, and Time
// the instant from which the state is void.
type place struct {
	// tag is the keyed hash of the key with the window's number in its low byte; 0
	// is a place that was never used. It is written under the shard's lock, and
	// read without it only to fetch the line early.
	tag  uint64
	cell limit.Cell
}

// reach is how many neighbouring places, from its home on, a key may stand in.
// Sixteen lines in a row are what a miss reads at most.
const reach = 32

// shard guards a run of places. It fills a cache line of its own, so that locks
// of different shards do not meet.
type shard struct {
	held atomic.Uint32
	// nonce numbers the takes of the shard, its own number in the upper bits:
	// receipts are told apart by it. It is 0 until a place of the shard is claimed, so
	// that a new table is not written to.
	nonce uint64
	_     [48]byte
}

// A held lock is looked at again after a while that doubles up to maxPause turns
// of an empty loop, ten microseconds or so, and then after yielding the processor. A
// lock is held for 30 ns; who waits longer than that lets the others work on a
// line that stays with them, so that several processors on one key are not slower
// than one.
const (
	firstPause = 512
	maxPause   = 32768
)

func (sh *shard) lock() {
	if !sh.held.CompareAndSwap(0, 1) {
		sh.lockSlow()
	}
}

func (sh *shard) lockSlow() {
	for pause := firstPause; ; pause *= 2 {
		for range pause {
			// The lock's line is left alone meanwhile.
		}
		if sh.held.Load() == 0 && sh.held.CompareAndSwap(0, 1) {
			return
		}
		if pause >= maxPause {
			runtime.Gosched()
			pause = firstPause
		}
	}
}

func (sh *shard) tryLock() bool { return sh.held.CompareAndSwap(0, 1) }

func (sh *shard) unlock() { sh.held.Store(0) }

// table is a fixed array of places, split into equal shards.
type table struct {
	shards []shard
	places []place
	// each is the number of places of a shard.
	each uint64
	// shift takes a hash to its shard.
	shift uint
}

// maxShardBits: 4096 shards are enough that 64 cores seldom meet, and their
// locks stay within a second-level cache.
const maxShardBits = 12

// nonceBits leave room for 2^48 takes a shard: nine years at a million a second.
const nonceBits = 48

// layOut gives a table of about as many places, without its memory: bytes says how much
// that is, and fill cuts it off a region.
func layOut(places int64) table {
	shardBits := uint(bits.Len64(uint64(places)/(8*reach))) - 1
	if places < 16*reach {
		shardBits = 0
	}
	shardBits = min(shardBits, maxShardBits)
	each := max(uint64(places)>>shardBits&^1, reach)
	return table{each: each, shift: 64 - shardBits}
}

func (t *table) shardCount() int { return 1 << (64 - t.shift) }
func (t *table) placeCount() int { return int(t.each) << (64 - t.shift) }

func (t *table) bytes() int64 {
	return regionBytes(t.shardCount(), unsafe.Sizeof(shard{})) + regionBytes(t.placeCount(), unsafe.Sizeof(place{}))
}

func (t *table) fill(r *region) {
	t.shards, t.places = cut[shard](r, t.shardCount()), cut[place](r, t.placeCount())
}

// spot is where a key belongs: its shard, the shard's places and its home among them.
type spot struct {
	shard uint64
	home  uint64
	tag   uint64
}

// neighbours is how many windows of a key have one home; the next ones have
// another, so that a rule of many windows does not fill its own neighbourhood.
const neighbours = 4

// spotOf costs two multiplications. The low byte of hash is free for the window's
// number: all windows of a key are under one lock.
func (t *table) spotOf(hash uint64, window uint8) spot {
	s := hash >> t.shift // A shift by 64 gives 0.
	within, _ := bits.Mul64((hash+uint64(window/neighbours)*0x9e3779b97f4a7c15)<<(64-t.shift), t.each)
	return spot{shard: s, home: within &^ 1, tag: hash | uint64(window)}
}

// touch asks for the line of a key's home before its lock is taken, so that the
// two misses, or those of a whole batch, overlap.
func (t *table) touch(s spot) {
	_ = atomic.LoadUint64(&t.places[s.shard*t.each+s.home].tag)
}

// run gives the places of a shard.
func (t *table) run(s spot) []place {
	return t.places[s.shard*t.each : (s.shard+1)*t.each]
}

// home gives the place where the search for a key begins.
func (t *table) home(s spot) *place { return &t.places[s.shard*t.each+s.home] }

// names reports whether a place is kept under the slot of an id, whose low 16 bits that is.
func (p *place) names(id headgate.PolicyID) bool { return uint32(p.cell.Policy) == uint32(id)&0xffff }

// counts reports whether a place holds the state of a tag, and that under the policy id. It
// is what most decisions find at home, and is small enough to be inlined.
func (p *place) counts(tag uint64, id headgate.PolicyID) bool {
	return p.tag == tag && p.names(id)
}

// find gives the place of a key for the policy id, or nil. Policies of one family share
// a place; a key may have several places, one for each family. The shard's lock is held.
// A run of used places never gets a hole, so an unused place ends the search.
func (s *Store) find(spot spot, id headgate.PolicyID, plan *limit.Plan) *place {
	run := s.table.run(spot)
	at := spot.home
	for range reach {
		if at >= uint64(len(run)) {
			at -= uint64(len(run))
		}
		p := &run[at]
		if p.tag == spot.tag && (p.names(id) || s.planOf(p).Family() == plan.Family()) {
			return p
		}
		if p.tag == 0 {
			return nil
		}
		at++
	}
	return nil
}

// claim gives the place to a key, whose former state, here or elsewhere in the
// shard, is void. The lock of sh is held. The epoch comes from the shard's nonces,
// so that an old receipt of the key is of another one, unless just a multiple of
// 65,536 takes lie between.
func (p *place) claim(at spot, policy headgate.PolicyID, sh *shard) {
	if sh.nonce == 0 {
		sh.nonce = at.shard << nonceBits
	}
	sh.nonce++
	atomic.StoreUint64(&p.tag, at.tag)
	p.cell = limit.Cell{Policy: uint16(policy), Epoch: uint16(sh.nonce)}
}
