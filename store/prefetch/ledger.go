package prefetch

import "sync"

// ledgerSize bounds the takes whose receipts are remembered as returned: 2 MiB or so.
const ledgerSize = 1 << 16

// ledger remembers which receipts were returned, so that each is returned once.
// When it is full the oldest line goes, and receipts of grants as old are no longer
// taken: their units stay counted, which is safe.
type ledger struct {
	mu       sync.Mutex
	returned map[uint64]uint8
	lines    []uint64
	next     int
	closed   uint64
}

// enter notes receipt i of the n of the take that first names, and reports whether
// this is what completes them.
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

// line makes a line for a take; mu is held.
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
