package fairshare

import (
	"hash/maphash"
	"sync/atomic"
)

// attemptPlaces bounds the ids of requests that are remembered: 512 KiB. Of more in
// one cycle some retries count as new requests.
const attemptPlaces = 1 << 16

// attempts remembers which requests were counted in a cycle.
type attempts struct {
	table atomic.Pointer[attemptTable]
}

type attemptTable struct {
	seed   maphash.Seed
	hashes [attemptPlaces]atomic.Uint64
}

// follow makes or drops the table.
func (a *attempts) follow(countOnce bool) {
	switch {
	case !countOnce:
		a.table.Store(nil)
	case a.table.Load() == nil:
		a.table.Store(&attemptTable{seed: maphash.MakeSeed()})
	}
}

// note notes an attempt under a hash, and reports whether the client made one at the
// same request in the same cycle. What it forgets, or mistakes, changes a demand a
// little and nothing else.
func (a *attempts) note(number uint64, client, id string) (hash uint64, again bool) {
	t := a.table.Load()
	if t == nil {
		return 0, false
	}
	var h maphash.Hash
	h.SetSeed(t.seed)
	_, _ = h.WriteString(client) // It never fails.
	_ = h.WriteByte(0)
	_, _ = h.WriteString(id)
	hash = h.Sum64() + number*0x9e3779b97f4a7c15
	return hash, t.hashes[hash%attemptPlaces].Swap(hash) == hash
}

// forget lets the next attempt count: the one noted does not.
func (a *attempts) forget(hash uint64) {
	if t := a.table.Load(); t != nil {
		t.hashes[hash%attemptPlaces].CompareAndSwap(hash, 0)
	}
}
