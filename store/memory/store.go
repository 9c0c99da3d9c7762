// Package memory keeps counters in the memory of one process.
//
// A Store reserves all memory when it is made, and does not grow. The memory is outside the
// heap of the runtime where the system allows. It has two parts: a table of 32-byte places,
// two in each cache line, and an array of blocks for logs and sliding windows. A key
// belongs to one of up to 4096 shards. Each shard has a lock, held for one decision.
// docs/decisions/0002-memory-table.md compares this with maps and lock-free words.
//
// A new key takes the place of void state, or else evicts the state that is nearest to full
// capacity, of a key that is not limited. A limited or banned key is never evicted. When
// all places that a new key may take hold such keys, the new key is refused, with the time
// until the first of them has room. AllowOnFull lets it pass uncounted instead.
package memory

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/keyhash"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/prepared"
)

// Config says how much a Store may hold. The zero Config is ready to use.
type Config struct {
	// MaxMemory bounds the table and the blocks together, in bytes; 0 is 64 MiB. The system
	// commits pages at the first use. The list of blocks takes 8 % of the blocks' memory on top.
	MaxMemory int64
	// BlockShare is the part of MaxMemory, in percent, for the states that need a block besides their
	// place in the table. 0 means 50 %. A negative value reserves no blocks.
	BlockShare int
	// SmallPages uses pages of 4 KiB for memory of any size, so that few keys use little of it. By
	// default, the system may use huge pages for more than 96 MiB, which are faster for many keys.
	SmallPages bool
	// AllowOnFull lets a new key pass uncounted when no place is free. By default the new key
	// is refused.
	AllowOnFull bool
	// Clock replaces the monotonic clock, in tests and simulations. Its times must not be before
	// the Unix epoch.
	Clock func() headgate.Instant
	// Seed makes two simulations with one clock and one goroutine place and evict the same keys. 0 places keys by a secret: a
	// server needs it, so that no client can choose keys that take the places of others.
	Seed uint64
}

// Sizes of a Store.
const (
	defaultMaxMemory = 64 << 20
	minMaxMemory     = 64 << 10
	placeBytes       = 32
)

// Store is a headgate.Store in memory, safe for concurrent use.
type Store struct {
	table    table
	blocks   *blocks
	clock    Clock
	keys     keyhash.Hash
	onFull   headgate.Verdict
	returned ledger

	policies prepared.Policies[limit.Plan]

	used    atomic.Int64
	evicted atomic.Uint64
	refused atomic.Uint64
	groups  groups
	slots   slotTable
	// fruitless counts the searches since the last one that found a block, and placeless those
	// that found no place.
	fruitless, placeless atomic.Uint64
}

var _ headgate.Store = (*Store)(nil)

// New makes a Store. The error names the setting that is invalid.
func New(c Config) (*Store, error) {
	if c.MaxMemory == 0 {
		c.MaxMemory = defaultMaxMemory
	}
	if c.MaxMemory < minMaxMemory {
		return nil, fmt.Errorf("memory: MaxMemory of %d bytes is too little: use at least %d", c.MaxMemory, minMaxMemory)
	}
	if c.BlockShare > 90 {
		return nil, fmt.Errorf("memory: BlockShare of %d leaves too little for the table: use at most 90", c.BlockShare)
	}
	if c.BlockShare == 0 {
		c.BlockShare = 50
	}
	forBlocks := c.MaxMemory / 100 * int64(max(c.BlockShare, 0))
	s := &Store{
		table:  layOut((c.MaxMemory - forBlocks) / placeBytes),
		clock:  NewClock(c.Clock),
		keys:   keyhash.New(c.Seed),
		onFull: headgate.Deny,
	}
	if c.AllowOnFull {
		s.onFull = headgate.Allow
	}
	words := blockWordsOf(forBlocks)
	r, err := newRegion(s, s.table.bytes()+blocksBytes(words), c.SmallPages)
	if err != nil {
		return nil, err
	}
	s.table.fill(r)
	s.blocks = newBlocks(r, words)
	s.slots.seed = c.Seed
	s.openPolicies()
	return s, nil
}

// made reports whether New made the Store. A zero Store has no table.
func (s *Store) made() bool { return s != nil && s.policies.Made() }

// hash is keyed, so that a client cannot find two keys that collide. Its low byte is free for
// the number of the window, and the next two bits for the ages of counts.
func (s *Store) hash(key string) uint64 {
	h := s.keys.String(key) &^ (0xff | ages)
	if h == 0 {
		h = 0x400 // A tag of 0 marks an unused place.
	}
	return h
}

// Stats are the sizes and counters of a Store, for metrics and status pages.
type Stats struct {
	// Places is the number of states that the table can hold. Used is the number of places that
	// were ever used. A used place with void state is free for a new key.
	Places, Used int64
	// BlockBytes is the memory for logs and sliding windows. BlockBytesLent is the part in use.
	BlockBytes, BlockBytesLent int64
	// Evicted counts states that still counted units and were evicted for a new key.
	Evicted uint64
	// Refused counts Ops of new keys that found no free place.
	Refused uint64
}

// Stats reads the counters. Stats locks no shard.
func (s *Store) Stats() Stats {
	if !s.made() {
		return Stats{}
	}
	return Stats{
		Places: int64(len(s.table.places)), Used: s.used.Load(),
		BlockBytes: int64(len(s.blocks.words)) * 8, BlockBytesLent: s.blocks.bytesLent(),
		Evicted: s.evicted.Load(), Refused: s.refused.Load(),
	}
}

// Now reads the store's clock.
func (s *Store) Now() headgate.Instant {
	if !s.made() {
		return 0
	}
	return s.clock.Now()
}

// Return implements headgate.Store.
func (s *Store) Return(_ context.Context, receipts []headgate.Receipt) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	for i := range receipts {
		if r := &receipts[i]; !r.Empty() && r.Units() > 0 && s.returned.enter(r) {
			s.giveBack(r)
		}
	}
	return nil
}

// giveBack returns the units of r, unless the state was evicted since.
func (s *Store) giveBack(r *headgate.Receipt) {
	at := s.table.spotOf(r.Place[0]&^0xff, uint8(r.Place[0]))
	sh := &s.table.shards[at.shard]
	sh.lock()
	if p := s.takenFrom(at, r); p != nil {
		s.restore(at, p, r)
	}
	sh.unlock()
	runtime.KeepAlive(s)
}

// takenFrom gives the place that r took its units from. It gives nil when the policy was
// freed or the state evicted. The caller holds the lock of the shard.
func (s *Store) takenFrom(at spot, r *headgate.Receipt) *place {
	policy := s.policies.Issuer(r.Policy)
	if policy == nil {
		return nil
	}
	p := s.find(at, r.Policy, &policy.Plan)
	switch {
	case p == nil || !policy.Plan.Issued(&p.cell, uint16(r.Place[1]), r):
		return nil
	case !policy.Plan.InCell() && p.cell.Returned != r.Returned:
		return nil // Units were refunded since.
	default:
		return p
	}
}
