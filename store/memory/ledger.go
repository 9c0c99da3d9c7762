package memory

import (
	"sync"

	"github.com/headgate/headgate"
)

// ledgerSize bounds the returned receipts that are remembered, about 2 MiB.
const ledgerSize = 1 << 16

// ledger remembers the returned receipts, so that a receipt is returned once. A full ledger
// forgets its oldest line. Older receipts of that shard are then refused: their units stay
// counted, which is safe.
type ledger struct {
	mu       sync.Mutex
	returned map[uint64]struct{}
	lines    []uint64
	next     int
	// closed holds, for each shard, the largest nonce that was forgotten.
	closed map[uint64]uint64
}

// enter reports whether r may be returned, and records r.
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

// forget drops a line. The caller holds mu. The nonces of a shard grow with time.
func (l *ledger) forget(nonce uint64) {
	delete(l.returned, nonce)
	shard := nonce >> nonceBits
	l.closed[shard] = max(l.closed[shard], nonce)
}
