package memory

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// A block begins with the words of its header.
const (
	blockWords = 0 // How many words were asked for.
	logHead    = 1
	logLen     = 2
	logUnits   = 3
	logTrimmed = 4
	logRing    = 5
	winNewest  = 1
	winTotal   = 2
	winRing    = 3
)

// firstLog is the size of a new log's block: one entry in one cache line.
const firstLog = 8

// blockBound gives the greatest block that one key of the plan can need, in words.
func blockBound(plan *limit.Plan) int {
	switch plan.Policy.Algorithm {
	case headgate.SlidingLog:
		return minBlock << orderOf(logWords(plan.LogBound()+1))
	case headgate.SlidingWindow:
		return minBlock << orderOf(winRing+plan.WindowCounters())
	default:
		return 0
	}
}

func logWords(entries int) int { return logRing + limit.EntryWords*entries }

// block lends n words for the place of the turn, after making room if it must.
// It reports whether there were any; the place then stands for the new block.
func (s *Store) block(t *turn, n int) bool {
	ref := s.blocks.lend(n)
	if ref == 0 {
		ref = s.makeRoom(t, n)
	}
	if ref == 0 {
		return false
	}
	t.place.cell.Units = ref
	s.blocks.block(ref, n)[blockWords] = int64(n)
	return true
}

// lentWords tells how many words p's block was asked for with.
func (s *Store) lentWords(p *place) int {
	return int(s.blocks.block(p.cell.Units, 1)[blockWords])
}

// blockFreeAt gives the instant from which p's block holds nothing that counts.
func (s *Store) blockFreeAt(plan *limit.Plan, p *place) headgate.Instant {
	switch {
	case p.cell.Units == 0:
		return 0
	case plan.Policy.Algorithm == headgate.SlidingLog:
		log := s.openLog(p)
		return plan.LogFreeAt(&log)
	default:
		w := s.openWindows(plan, p)
		return plan.WindowsFreeAt(&w)
	}
}

// openLog reads the log of p; a place without a block has an empty one.
func (s *Store) openLog(p *place) limit.Log {
	if p.cell.Units == 0 {
		return limit.Log{}
	}
	b := s.blocks.block(p.cell.Units, s.lentWords(p))
	// The block may be longer than was asked for; the ring ends on a whole entry.
	ring := b[logRing:]
	return limit.Log{
		Ring: ring[:len(ring)/limit.EntryWords*limit.EntryWords],
		Head: int(b[logHead]), Len: int(b[logLen]), Units: b[logUnits], Trimmed: headgate.Instant(b[logTrimmed]),
	}
}

// closeLog writes back what a decision changed.
func (s *Store) closeLog(p *place, l *limit.Log) {
	if p.cell.Units == 0 {
		return
	}
	b := s.blocks.block(p.cell.Units, 1)
	b[logHead], b[logLen], b[logUnits], b[logTrimmed] = int64(l.Head), int64(l.Len), l.Units, int64(l.Trimmed)
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
		d.Receipt.Cost = 0 // A refusal that cannot be counted is one all the same.
	default:
		s.storeFull(t, d)
	}
}

// growLog doubles the ring of a log, up to one entry more than the plan keeps: a
// take puts its entry in before it drops the oldest.
func (s *Store) growLog(t *turn, log *limit.Log) bool {
	old, oldWords, words := t.place.cell.Units, 0, firstLog
	if old != 0 {
		oldWords = s.lentWords(t.place)
		words = minBlock << (orderOf(oldWords) + 1)
	}
	words = max(min(words, logWords(t.plan.LogBound()+1)), logWords(log.Len+1))
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

// openWindows reads the counters of p, which has a block.
func (s *Store) openWindows(plan *limit.Plan, p *place) limit.Windows {
	n := winRing + plan.WindowCounters()
	b := s.blocks.block(p.cell.Units, n)
	return limit.Windows{Counters: b[winRing:n], Newest: b[winNewest], Total: b[winTotal]}
}

func (s *Store) closeWindows(p *place, w *limit.Windows) {
	b := s.blocks.block(p.cell.Units, 1)
	b[winNewest], b[winTotal] = w.Newest, w.Total
}

func (s *Store) judgeWindows(t *turn, d *headgate.Decision) {
	if t.place.cell.Units == 0 {
		if t.mode == headgate.Peek {
			// A state that is not there is judged on the stack.
			var none [limit.MaxSubWindows + 1]int64
			t.plan.JudgeWindows(&limit.Windows{Counters: none[:t.plan.WindowCounters()]}, t.now, t.cost, d)
			return
		}
		if !s.block(t, winRing+t.plan.WindowCounters()) {
			s.storeFull(t, d)
			return
		}
	}
	w := s.openWindows(t.plan, t.place)
	t.plan.JudgeWindows(&w, t.now, t.cost, d)
	s.closeWindows(t.place, &w)
}

// carryWindows restates the counters of the place for the turn's plan, in the block
// that they have if it is large enough. It reports false, and leaves them as they
// are, when there is no room for a larger one.
func (s *Store) carryWindows(t *turn, old *limit.Plan) bool {
	p := t.place
	if p.cell.Units == 0 {
		return true
	}
	var kept [limit.MaxSubWindows + 1]int64
	from := s.openWindows(old, p)
	from.Counters = kept[:copy(kept[:], from.Counters)]
	ref, words, need := p.cell.Units, s.lentWords(p), winRing+t.plan.WindowCounters()
	larger := orderOf(need) > orderOf(words)
	if larger && !s.block(t, need) {
		return false
	}
	w := s.openWindows(t.plan, p)
	t.plan.CarryWindows(&w, old, &from, t.now)
	s.closeWindows(p, &w)
	if larger {
		s.blocks.free(ref, words)
	}
	return true
}
