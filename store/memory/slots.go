package memory

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/keyhash"
)

// slotTable counts the slots of requests in flight. It grows with the requests in flight, not with keys:
// a key without a slot has no entry. An entry takes about 40 bytes, which max_memory does not count.
type slotTable struct {
	// Two hashes give 128 bits of a key, so that two keys never share an entry.
	hashes [2]keyhash.Hash
	seed   uint64                                // Config.Seed
	shards atomic.Pointer[[slotShards]slotShard] // nil until the first slot
	seeded sync.Once
}

// slotShards is the number of locks.
const slotShards = 64

type slotShard struct {
	mu    sync.Mutex
	taken map[[2]uint64]int64 // by key and window; guarded by mu
	_     [48]byte            // Each shard has a cache line of its own.
}

var _ headgate.SlotStore = (*Store)(nil)

// TakeSlot implements headgate.SlotStore. It locks one of 64 shards, and allocates only when more keys
// have slots than ever before.
func (s *Store) TakeSlot(_ context.Context, op headgate.SlotOp) (headgate.Decision, error) {
	if !s.made() {
		return headgate.Undecided(), headgate.ErrNotMade
	}
	place := s.slots.place(&op)
	d := headgate.Decision{Reason: headgate.WithinLimit, Limit: op.Limit, At: s.clock.Now()}
	sh := s.slots.shard(place)
	sh.mu.Lock()
	n := sh.taken[place]
	if n < op.Limit && !op.Peek {
		n++
		if sh.taken == nil {
			sh.taken = map[[2]uint64]int64{}
		}
		sh.taken[place] = n
		d.Receipt = headgate.Receipt{Nonce: 1, Place: place, Cost: 1, From: d.At}
	}
	sh.mu.Unlock()
	if d.Remaining = max(0, op.Limit-n); d.Receipt.Empty() && (!op.Peek || d.Remaining == 0) {
		d.Verdict, d.Reason = headgate.Deny, headgate.InFlight
	}
	return d, nil
}

// FreeSlot implements headgate.SlotStore.
func (s *Store) FreeSlot(r headgate.Receipt) {
	if !s.made() || r.Empty() {
		return
	}
	sh := s.slots.shard(r.Place)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if n := sh.taken[r.Place]; n > 1 {
		sh.taken[r.Place] = n - 1
	} else {
		delete(sh.taken, r.Place)
	}
}

// place gives the 128 bits of a key and window.
func (s *slotTable) place(op *headgate.SlotOp) [2]uint64 {
	s.seeded.Do(func() {
		for i := range s.hashes {
			s.hashes[i] = keyhash.New(secondSeed(s.seed, uint64(i)))
		}
		s.shards.Store(new([slotShards]slotShard))
	})
	return [2]uint64{s.hashes[0].String(op.Key) + uint64(op.Window), s.hashes[1].String(op.Key)}
}

// secondSeed gives another seed for each number; 0 stays a secret.
func secondSeed(seed, number uint64) uint64 {
	if seed == 0 {
		return 0
	}
	return max(seed+number, 1)
}

func (s *slotTable) shard(place [2]uint64) *slotShard { return &s.shards.Load()[place[1]%slotShards] }
