package fairshare

import (
	"sync/atomic"

	"github.com/headgate/headgate/internal/keyhash"
)

// attemptPlaces bounds the remembered request IDs. The table takes 512 KiB. With more
// IDs in one cycle, some retries count as new requests.
const attemptPlaces = 1 << 16

// attempts remembers the requests that were counted in a cycle.
type attempts struct {
	table atomic.Pointer[attemptTable]
}

type attemptTable struct {
	names  keyhash.Hash
	hashes [attemptPlaces]atomic.Uint64
}

// enable allocates the table, or drops it if countOnce is false.
func (a *attempts) enable(countOnce bool, seed uint64) {
	switch {
	case !countOnce:
		a.table.Store(nil)
	case a.table.Load() == nil:
		a.table.Store(&attemptTable{names: keyhash.New(seed)})
	}
}

// note records an attempt and returns its hash. again reports that the client already
// made an attempt at the same request in this cycle. A lost or colliding entry changes
// only the demand, by one request.
func (a *attempts) note(number uint64, client, id string) (hash uint64, again bool) {
	t := a.table.Load()
	if t == nil {
		return 0, false
	}
	hash = t.names.Pair(client, id) + number*0x9e3779b97f4a7c15
	return hash, t.hashes[hash%attemptPlaces].Swap(hash) == hash
}

// forget removes a recorded attempt, so that the next attempt counts as demand.
func (a *attempts) forget(hash uint64) {
	if t := a.table.Load(); t != nil {
		t.hashes[hash%attemptPlaces].CompareAndSwap(hash, 0)
	}
}
