package prefetch

import (
	"context"

	"github.com/headgate/headgate"
)

// Forget implements headgate.Store. Forget drops the stashes and refusals of the keys in this
// instance. Other instances may spend their stashes until they expire.
func (s *Store) Forget(ctx context.Context, ops []headgate.Op) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	s.drop(ops)
	err := s.source.Forget(ctx, ops)
	s.drop(ops) // A grant that arrived meanwhile may have been decided before the source forgot the key.
	return err
}

func (s *Store) drop(ops []headgate.Op) {
	for i := range ops {
		tag := s.hash(ops[i].Key)
		t := s.table.setOf(tag)
		t.lock()
		t.forgot++
		t.lifted++
		for j := range t.tags {
			if pl := &t.places[j]; t.tags[j] == tag && pl.shape.has(ops[i].Window) {
				s.closeStash(&pl.stashes[0])
				s.closeStash(&pl.stashes[1])
				pl.said = said{}
			}
		}
		t.unlock()
	}
}

func (sh *shape) has(window uint8) bool {
	for _, w := range sh {
		if w != 0 && w&0xff == uint64(window) {
			return true
		}
	}
	return false
}
