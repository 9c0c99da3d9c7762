package memory

import (
	"sync"

	"github.com/headgate/headgate"
)

// ledgerSize bounds the receipts that are remembered as returned: 2 MiB or so.
const ledgerSize = 1 << 16

// ledger remembers which receipts were returned, so that each is returned once.
// When it is full the oldest line goes, and receipts as old as that line are no
// longer taken: their units stay counted, which is safe.
type ledger struct {
	mu       sync.Mutex
	returned map[uint64]struct{}
	lines    []line
	next     int
	closed   headgate.Instant
}

type line struct {
	nonce uint64
	from  headgate.Instant
}

// enter reports whether r may be returned, and notes it.
func (l *ledger) enter(r *headgate.Receipt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.From <= l.closed {
		return false
	}
	if _, done := l.returned[r.Nonce]; done {
		return false
	}
	if l.returned == nil {
		l.returned = make(map[uint64]struct{})
	}
	if len(l.lines) < ledgerSize {
		l.lines = append(l.lines, line{})
	} else {
		old := l.lines[l.next]
		delete(l.returned, old.nonce)
		l.closed = max(l.closed, old.from)
	}
	l.lines[l.next] = line{r.Nonce, r.From}
	l.next = (l.next + 1) % ledgerSize
	l.returned[r.Nonce] = struct{}{}
	return true
}
