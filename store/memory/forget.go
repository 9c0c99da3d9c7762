package memory

import (
	"context"

	"github.com/headgate/headgate"
)

// Forget implements headgate.Store. It holds the lock of one shard at a time, and
// costs a search for each op: a place stays its key's, void, until a new key takes it.
func (s *Store) Forget(_ context.Context, ops []headgate.Op) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	for i := range ops {
		at := s.table.spotOf(s.hash(ops[i].Key), ops[i].Window)
		sh := &s.table.shards[at.shard]
		sh.lock()
		if p := s.table.find(at); p != nil {
			s.release(p)
		}
		sh.unlock()
	}
	return nil
}
