package memory

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// A sliding window has a ring of counters for each N of its policies. The rings follow each
// other in one block, in the order in which they were added.

// nextRing gives the offset of the ring that follows the ring at offset at, and the N of that
// ring. N is 0 after the last ring. An at of 0 gives the first ring.
func (s *Store) nextRing(p *place, at int) (next, n int) {
	if p.cell.Units == 0 {
		return 0, 0
	}
	all := uint64(s.blocks.block(p.cell.Units, 1)[blockWords]) >> wordsBits
	next = winRings
	for ; all != 0; all >>= ringBits {
		n = int(all & (1<<ringBits - 1))
		if next > at {
			return next, n
		}
		next += ringWords(n)
	}
	return 0, 0
}

// ringOf gives the offset of the ring of N, or 0.
func (s *Store) ringOf(p *place, n int) int {
	for at, m := s.nextRing(p, 0); m > 0; at, m = s.nextRing(p, at) {
		if m == n {
			return at
		}
	}
	return 0
}

// openRing reads the ring of N at offset at.
func (s *Store) openRing(p *place, at, n int) limit.Windows {
	b := s.blocks.block(p.cell.Units, at+ringWords(n))[at:]
	return limit.Windows{Counters: b[ringHead:ringWords(n)], Newest: b[ringNewest], Total: b[ringTotal]}
}

// closeRing writes back the fields of the ring that a decision changed.
func (s *Store) closeRing(p *place, at int, w *limit.Windows) {
	b := s.blocks.block(p.cell.Units, at+ringHead)[at:]
	b[ringNewest], b[ringTotal] = w.Newest, w.Total
	p.cell.Epoch += w.Moved
	w.Moved = 0
}

func (s *Store) judgeWindows(t *turn, d *headgate.Decision) {
	n := t.plan.Policy.SubWindows
	at := s.ringOf(t.place, n)
	if at == 0 && t.mode != headgate.Peek {
		at = s.addRing(t)
	}
	if at == 0 {
		s.judgeNoRing(t, d)
		return
	}
	w := s.openRing(t.place, at, n)
	t.plan.JudgeWindows(&w, t.now, t.cost, d)
	s.closeRing(t.place, at, &w)
}

// judgeNoRing decides on the stack when the turn has no ring: for a Peek, or when no block is
// free for a ring. If the key has another ring, a take is counted there.
func (s *Store) judgeNoRing(t *turn, d *headgate.Decision) {
	var counters [limit.MaxSubWindows + 1]int64
	w := limit.Windows{Counters: counters[:t.plan.WindowCounters()]}
	switch at, n := s.finestRing(t.place); {
	case n > 0:
		from := s.openRing(t.place, at, n)
		t.plan.SeedWindows(&w, &from, t.now)
		s.closeRing(t.place, at, &from)
	case t.mode != headgate.Peek:
		s.storeFull(t, d)
		return
	}
	t.plan.JudgeWindows(&w, t.now, t.cost, d)
}

// finestRing gives the offset of the ring with the largest N, and that N.
func (s *Store) finestRing(p *place) (at, n int) {
	for i, m := s.nextRing(p, 0); m > 0; i, m = s.nextRing(p, i) {
		if m > n {
			at, n = i, m
		}
	}
	return at, n
}

// takeWindows counts the last decision of judgeWindows in every ring.
func (s *Store) takeWindows(t *turn, d *headgate.Decision) {
	for at, n := s.nextRing(t.place, 0); n > 0; at, n = s.nextRing(t.place, at) {
		w := s.openRing(t.place, at, n)
		if t.plan.Rings(&w) {
			t.plan.TakeWindows(&w, t.now, d)
		} else {
			t.plan.CountWindows(&w, d.At, d.Receipt.Cost)
		}
		s.closeRing(t.place, at, &w)
	}
}

// addRing adds a ring for the turn's N and gives its offset, or 0 when no block is free. The
// ring begins with the counts of the finest other ring. With MaxRings rings, the first ring
// is dropped.
func (s *Store) addRing(t *turn) int {
	p, n := t.place, t.plan.Policy.SubWindows
	old := *p
	drop, kept, rings := 0, 0, 0
	for at, m := s.nextRing(p, 0); m > 0; at, m = s.nextRing(p, at) {
		rings, kept = rings+1, at+ringWords(m)-winRings
	}
	if rings == limit.MaxRings {
		_, m := s.nextRing(p, 0)
		drop, rings = ringWords(m), rings-1
	}
	at := winRings + kept - drop
	if !s.block(t, at+ringWords(n)) {
		return 0
	}
	b := s.blocks.block(p.cell.Units, at+ringWords(n))
	if old.cell.Units != 0 {
		s.seedRing(t, &old, b[at:])
		words := s.lentWords(&old)
		from := s.blocks.block(old.cell.Units, words)
		copy(b[winRings:at], from[winRings+drop:winRings+kept])
		all := uint64(from[blockWords]) >> wordsBits
		if drop > 0 {
			all >>= ringBits
		}
		b[blockWords] |= int64(all << wordsBits)
		s.blocks.free(old.cell.Units, words)
	}
	b[blockWords] |= int64(n) << (wordsBits + ringBits*rings)
	return at
}

// seedRing fills the turn's new ring, in the words b, from the finest ring of the old block.
func (s *Store) seedRing(t *turn, old *place, b []int64) {
	at, n := s.finestRing(old)
	from := s.openRing(old, at, n)
	w := limit.Windows{Counters: b[ringHead:ringWords(t.plan.Policy.SubWindows)]}
	t.plan.SeedWindows(&w, &from, t.now)
	b[ringNewest], b[ringTotal] = w.Newest, w.Total
	s.closeRing(old, at, &from)
	t.place.cell.Epoch = old.cell.Epoch
}
