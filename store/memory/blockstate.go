package memory

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// A block begins with its header. The header of a sliding window is one word. Each ring of
// a sliding window begins with two words.
const (
	blockWords = 0 // The number of words that lend was called with; in a ring, N.
	logEntries = 1 // Head and Len, 32 bits each.
	logUnits   = 2 // Units and Most, 32 bits each.
	logTrimmed = 3
	logMostAt  = 4
	logOwed    = 5
	logRing    = 6
	winRings   = 1
	ringNewest = 0
	ringTotal  = 1
	ringHead   = 2
)

// The first word of a block has two fields. A log takes less than 2^26 words, and N fits
// into nine bits.
const (
	wordsBits = 26
	ringBits  = 9
	halfWord  = 32
)

// firstLog is the size of a new log's block: one entry in one cache line.
const firstLog = 8

// ringWords gives the number of words of a ring with N sub-windows.
func ringWords(n int) int { return ringHead + n + 1 }

func logWords(entries int) int { return logRing + limit.EntryWords*entries }

// block lends n words to the place of the turn, and evicts other states if needed. It
// reports false when no block could be freed.
func (s *Store) block(t *turn, n int) bool {
	ref := s.blocks.lend(n)
	if ref == 0 {
		ref = s.makeRoom(t, n)
	}
	if ref == 0 {
		return false
	}
	s.blocks.own(ref, s.numberOf(t))
	t.place.cell.Units = ref
	s.blocks.block(ref, n)[blockWords] = int64(n)
	return true
}

// numberOf gives the number of the turn's place in the table.
func (s *Store) numberOf(t *turn) uint64 {
	run, at := s.table.run(t.at), t.at.home
	for i := range uint64(reach) {
		at = (t.at.home + i) % uint64(len(run))
		if &run[at] == t.place {
			break
		}
	}
	return t.at.shard*s.table.each + at
}

// lentWords gives the number of words that the block of p was requested with.
func (s *Store) lentWords(p *place) int {
	return int(s.blocks.block(p.cell.Units, 1)[blockWords] & (1<<wordsBits - 1))
}

// openLog reads the log of p. A place without a block has an empty log.
func (s *Store) openLog(p *place) limit.Log {
	if p.cell.Units == 0 {
		return limit.Log{}
	}
	b := s.blocks.block(p.cell.Units, s.lentWords(p))
	// The block may be longer than requested. The ring ends with a whole entry.
	ring := b[logRing:]
	return limit.Log{
		Ring: ring[:len(ring)/limit.EntryWords*limit.EntryWords],
		Head: int(b[logEntries] >> halfWord), Len: int(b[logEntries] & (1<<halfWord - 1)),
		Units: b[logUnits] & (1<<halfWord - 1), Most: b[logUnits] >> halfWord,
		Trimmed: headgate.Instant(b[logTrimmed]), MostAt: headgate.Instant(b[logMostAt]),
		Owed: b[logOwed],
	}
}

// closeLog writes back the fields of the log that a decision changed.
func (s *Store) closeLog(p *place, l *limit.Log) {
	if p.cell.Units == 0 {
		return
	}
	b := s.blocks.block(p.cell.Units, 1)
	b[logEntries], b[logUnits] = int64(l.Head)<<halfWord|int64(l.Len), l.Most<<halfWord|l.Units
	b[logTrimmed], b[logMostAt] = int64(l.Trimmed), int64(l.MostAt)
	b[logOwed] = l.Owed
	p.cell.Epoch += l.Moved
	l.Moved = 0
}

func (s *Store) judgeLog(t *turn, d *headgate.Decision) {
	log := s.openLog(t.place)
	t.plan.JudgeLog(&log, t.now, t.cost, d)
	s.closeLog(t.place, &log)
	counted := d.Verdict == headgate.Allow || t.plan.Policy.CountRejected && d.Reason != headgate.Never
	if t.mode == headgate.Peek || t.cost == 0 || !counted || log.Room() {
		return
	}
	switch {
	case s.growLog(t, &log):
	case d.Verdict == headgate.Deny:
		d.Receipt.Cost = 0 // A refusal stays a refusal when its attempt cannot be counted.
	default:
		s.storeFull(t, d)
	}
}

// growLog doubles the ring of a log. The bound is one entry more than the largest Count in
// use, because a take appends its entry before it drops the oldest one.
func (s *Store) growLog(t *turn, log *limit.Log) bool {
	old, oldWords, words := t.place.cell.Units, 0, firstLog
	if old != 0 {
		oldWords = s.lentWords(t.place)
		words = minBlock << (orderOf(oldWords) + 1)
	}
	words = max(min(words, logWords(max(t.plan.LogBound(), int(log.Most))+1)), logWords(log.Len+1))
	if !s.block(t, words) {
		return false
	}
	ring := s.openLog(t.place).Ring
	log.CopyTo(ring)
	s.closeLog(t.place, log)
	if old != 0 {
		s.blocks.free(old, oldWords)
	}
	return true
}
