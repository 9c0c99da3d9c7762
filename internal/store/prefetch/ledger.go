package prefetch

import "sync"

// ledgerSize bounds the takes with remembered receipts, about 2 MiB.
const ledgerSize = 1 << 16

// ledger remembers the returned receipts, so that a receipt is returned once. A full ledger
// forgets its oldest line. Receipts of grants of that age are then refused: their units
// stay counted, which is safe.
type ledger struct {
	mu       sync.Mutex
	returned map[uint64]uint8
	lines    []uint64
	next     int
	closed   uint64
}

// enter records receipt i of the n receipts of a take. first names the take. enter reports
// whether this receipt is the last one missing.
func (l *ledger) enter(first uint64, i, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.returned == nil {
		l.returned = make(map[uint64]uint8)
	}
	before := l.returned[first]
	if first>>seqBits <= l.closed || before&(1<<i) != 0 {
		return false
	}
	if before == 0 {
		l.line(first)
	}
	l.returned[first] = before | 1<<i
	return before|1<<i == 1<<n-1
}

// line makes a line for a take. The caller holds mu.
func (l *ledger) line(first uint64) {
	if len(l.lines) < ledgerSize {
		l.lines = append(l.lines, first)
		return
	}
	old := l.lines[l.next]
	delete(l.returned, old)
	l.closed = max(l.closed, old>>seqBits)
	l.lines[l.next] = first
	l.next = (l.next + 1) % ledgerSize
}
