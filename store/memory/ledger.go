package memory

import (
	"sync"

	"github.com/headgate/headgate"
)

// ledgerSize bounds the receipts that are remembered as returned: 2 MiB or so.
const ledgerSize = 1 << 16

// ledger remembers which receipts were returned, so that each is returned once.
// When it is full the oldest line goes, and receipts of its shard that are as old
// are no longer taken: their units stay counted, which is safe.
type ledger struct {
	mu       sync.Mutex
	returned map[uint64]struct{}
	lines    []uint64
	next     int
	// closed holds, for each shard, the greatest nonce that was forgotten.
	closed map[uint64]uint64
}

// enter reports whether r may be returned, and notes it.
func (l *ledger) enter(r *headgate.Receipt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.returned == nil {
		l.returned, l.closed = make(map[uint64]struct{}), make(map[uint64]uint64)
	}
	if r.Nonce <= l.closed[r.Nonce>>nonceBits] {
		return false
	}
	if _, done := l.returned[r.Nonce]; done {
		return false
	}
	if len(l.lines) < ledgerSize {
		l.lines = append(l.lines, 0)
	} else {
		l.forget(l.lines[l.next])
	}
	l.lines[l.next] = r.Nonce
	l.next = (l.next + 1) % ledgerSize
	l.returned[r.Nonce] = struct{}{}
	return true
}

// forget drops a line; mu is held. A shard's nonces grow with time.
func (l *ledger) forget(nonce uint64) {
	delete(l.returned, nonce)
	shard := nonce >> nonceBits
	l.closed[shard] = max(l.closed[shard], nonce)
}
