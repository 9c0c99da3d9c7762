package refusals

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
)

// ways is the number of counters that a set remembers: a set fills four cache lines.
const ways = 7

// Table remembers counters. It allocates its memory at once, and replaces the counter whose window ends
// first when a set is full. A Table is safe for concurrent use. Find takes no lock.
//
// A counter is known by 64 bits of a hash with a random seed. Two counters with the same bits would be
// one; among 10 million remembered counters, one of 10^11 requests meets that by chance.
type Table struct {
	sets []set
	seed maphash.Seed

	found, missed     atomic.Uint64
	entries           atomic.Int64
	replaced, expired atomic.Uint64
	overwritten       atomic.Uint64
}

// set remembers some counters. Readers compare seq before and after reading: it is odd while mu is locked
// and entries change.
type set struct {
	mu      sync.Mutex
	seq     atomic.Uint32
	lifted  atomic.Uint32 // calls of Lift
	entries [ways]entry
}

// entry is a counter. Its tag is 0 in an unused entry.
type entry struct {
	tag   atomic.Uint64
	until atomic.Int64 // the time of the caller at which the window ends
	end   atomic.Int64 // the time of the store at which it ends
	count atomic.Int64
}

// setBytes is the memory of a set.
const setBytes = int64(unsafe.Sizeof(set{}))

// New makes a Table of at most the given number of bytes, and at least one set of 240 bytes.
func New(bytes int64) *Table {
	return &Table{sets: make([]set, max(1, bytes/setBytes)), seed: maphash.MakeSeed()}
}

// Refusal is what is known about a counter.
type Refusal struct {
	// Count is a lower bound of the units that are counted in the window.
	Count int64
	// End is the end of the window by the store's clock, and Left the time until then.
	End  headgate.Instant
	Left time.Duration
}

// Place names the counter of one request. What the request learns is remembered only if no Lift of the
// counter came since Find. The zero Place remembers nothing.
type Place struct {
	table  *Table
	set    *set
	tag    uint64
	lifted uint32
}

// Find looks for a counter: a key, and the period of its window. It reports false if the counter is not
// remembered.
func (t *Table) Find(key string, per, now time.Duration) (Place, Refusal, bool) {
	p := t.place(key, per)
	seq := p.set.seq.Load()
	for i := range p.set.entries {
		e := &p.set.entries[i]
		if e.tag.Load() != p.tag {
			continue
		}
		r := Refusal{Count: e.count.Load(), End: headgate.Instant(e.end.Load()), Left: time.Duration(e.until.Load()) - now}
		// A longer time comes from a clock that has stepped back.
		if seq%2 == 0 && p.set.seq.Load() == seq && r.Left > 0 && r.Left <= per {
			return p, r, true
		}
		break
	}
	return p, Refusal{}, false
}

// Asked counts requests that Find has answered, and others that it could have answered.
func (t *Table) Asked(found, missed int) {
	if found > 0 {
		t.found.Add(uint64(found))
	}
	if missed > 0 {
		t.missed.Add(uint64(missed))
	}
}

func (t *Table) place(key string, per time.Duration) Place {
	const odd = 0x9e3779b97f4a7c15 // the golden ratio: it spreads periods over all bits
	tag := maphash.String(t.seed, key) ^ uint64(per)*odd
	i, _ := bits.Mul64(tag, uint64(len(t.sets)))
	s := &t.sets[i]
	return Place{t, s, max(1, tag), s.lifted.Load()}
}

// Learn remembers a counter. now is a time before the store decided, so that the refusal ends in time.
func (p Place) Learn(r Refusal, now time.Duration) {
	if p.set == nil {
		return
	}
	s := p.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifted.Load() != p.lifted {
		return
	}
	e := p.choose(now)
	if e.tag.Load() == p.tag && e.end.Load() == int64(r.End) {
		r.Count = max(r.Count, e.count.Load())
	}
	s.seq.Add(1)
	e.tag.Store(p.tag)
	e.until.Store(int64(now + r.Left))
	e.end.Store(int64(r.End))
	e.count.Store(r.Count)
	s.seq.Add(1)
}

// choose finds the entry of the counter, or one that it may replace: an unused one, or the one whose
// window ends first. The set is locked.
func (p Place) choose(now time.Duration) *entry {
	var best *entry
	for i := range p.set.entries {
		e := &p.set.entries[i]
		switch {
		case e.tag.Load() == p.tag:
			p.table.overwritten.Add(1)
			return e
		case best == nil, e.until.Load() < best.until.Load() && best.tag.Load() != 0, e.tag.Load() == 0 && best.tag.Load() != 0:
			best = e
		}
	}
	switch {
	case best.tag.Load() == 0:
		p.table.entries.Add(1)
	case best.until.Load() <= int64(now):
		p.table.expired.Add(1)
	default:
		p.table.replaced.Add(1)
	}
	return best
}

// Lift forgets a counter because units were given back to it. It forgets what requests learn that have
// called Find before.
func (t *Table) Lift(key string, per time.Duration) {
	p := t.place(key, per)
	s := p.set
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifted.Add(1)
	for i := range s.entries {
		if e := &s.entries[i]; e.tag.Load() == p.tag {
			s.seq.Add(1)
			e.tag.Store(0)
			s.seq.Add(1)
			t.entries.Add(-1)
		}
	}
}

// Stats are counters of a Table. A nil Table has the zero Stats.
type Stats struct {
	// Found and Missed count requests that were refused from memory, and those that were not.
	// Replaced and Expired count counters whose memory another one took, before and after the end
	// of their windows. Overwritten counts what was learnt about counters that were known.
	Found, Missed, Replaced, Expired, Overwritten uint64
	// Entries is the number of counters in memory, and Bytes the memory.
	Entries, Bytes int64
}

// Stats gives the counters.
func (t *Table) Stats() Stats {
	if t == nil {
		return Stats{}
	}
	return Stats{
		Found: t.found.Load(), Missed: t.missed.Load(), Replaced: t.replaced.Load(), Expired: t.expired.Load(),
		Overwritten: t.overwritten.Load(),
		Entries:     t.entries.Load(), Bytes: int64(len(t.sets)) * setBytes,
	}
}
