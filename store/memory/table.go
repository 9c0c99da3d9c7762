package memory

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// place is the state of one key, in half a cache line. A place holds no pointer, so the
// garbage collector scans nothing, however many keys there are.
//
// The cell is the whole state of a bucket, a fixed window or a ban. For a log or a sliding
// window, Units is the block with the state, and Time the instant at which the state
// becomes void.
type place struct {
	// tag is the keyed hash of the key, with the number of the window in the low byte. 0 marks
	// an unused place. tag is written under the lock of the shard. The only reads without the
	// lock fetch the cache line early.
	tag  uint64
	cell limit.Cell
}

// reach is the number of neighbouring places, beginning with its home, that a key may take.
// A miss reads at most 16 consecutive cache lines.
const reach = 32

// shard guards a run of places. A shard fills a cache line, to avoid false sharing between
// locks.
type shard struct {
	held atomic.Uint32
	// nonce numbers the takes of the shard. The upper bits are the number of the shard, so
	// that all receipts differ. nonce is 0 until a key claims a place of the shard, so that a
	// new table stays unwritten.
	nonce uint64
	_     [48]byte
}

// A waiter polls a held lock after a pause that doubles up to maxPause turns of an empty
// loop, about ten microseconds. After that, each pause yields the processor. A lock is
// held for 30 ns. A waiter that pauses longer leaves the cache line to the holders. So
// several processors on one key are not slower than one.
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
			// The pause does not read the cache line of the lock.
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
	// each is the number of places in a shard.
	each uint64
	// shift is the number of bits that turns a hash into the number of its shard.
	shift uint
}

// maxShardBits: with 4096 shards, 64 cores seldom contend, and the locks fit into a
// second-level cache.
const maxShardBits = 12

// nonceBits leaves 2^48 takes for each shard: nine years at a million a second.
const nonceBits = 48

// layOut gives a table of about this many places, without its memory. bytes gives the size
// of that memory, and fill cuts it off a region.
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

// spot is the shard of a key, and the home of the key within the shard.
type spot struct {
	shard uint64
	home  uint64
	tag   uint64
}

// neighbours is the number of windows of a key that share one home. Further windows have
// other homes, so that a rule with many windows does not fill one neighbourhood.
const neighbours = 4

// spotOf costs two multiplications. The low byte of hash is free for the number of the
// window. All windows of a key are under one lock.
func (t *table) spotOf(hash uint64, window uint8) spot {
	s := hash >> t.shift // A shift by 64 gives 0.
	within, _ := bits.Mul64((hash+uint64(window/neighbours)*0x9e3779b97f4a7c15)<<(64-t.shift), t.each)
	return spot{shard: s, home: within &^ 1, tag: hash | uint64(window)}
}

// touch fetches the cache line of a key's home before the lock is taken. The two cache
// misses of a key then overlap, and also those of a batch.
func (t *table) touch(s spot) {
	_ = atomic.LoadUint64(&t.places[s.shard*t.each+s.home].tag)
}

// run gives the places of a shard.
func (t *table) run(s spot) []place {
	return t.places[s.shard*t.each : (s.shard+1)*t.each]
}

// home gives the place where the search for a key begins.
func (t *table) home(s spot) *place { return &t.places[s.shard*t.each+s.home] }

// names reports whether a place is kept under the slot of an id: the low 16 bits.
func (p *place) names(id headgate.PolicyID) bool { return uint32(p.cell.Policy) == uint32(id)&0xffff }

// counts reports whether a place holds the state of a tag under the policy id. Most
// decisions find it true at the key's home. The function is small enough to be inlined.
func (p *place) counts(tag uint64, id headgate.PolicyID) bool {
	return p.tag == tag && p.names(id)
}

// find gives the place of a key for the policy id, or nil. Policies of one family share a
// place; a key may have one place for each family. The caller holds the lock of the shard.
// A run of used places has no gaps, so an unused place ends the search.
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

// claim gives the place to a key. Any former state of the key in the shard is void. The
// caller holds the lock of sh. The epoch is the low 16 bits of the shard's nonce, so an old
// receipt of the key names another epoch, unless exactly a multiple of 65,536 takes lie
// between.
func (p *place) claim(at spot, policy headgate.PolicyID, sh *shard) {
	if sh.nonce == 0 {
		sh.nonce = at.shard << nonceBits
	}
	sh.nonce++
	atomic.StoreUint64(&p.tag, at.tag)
	p.cell = limit.Cell{Policy: uint16(policy), Epoch: uint16(sh.nonce)}
}
