package prefetch

import (
	"context"

	"github.com/headgate/headgate"
)

// Forget implements headgate.Store. It drops stashes and refusals of the keys here;
// what other instances hold they may spend until it expires.
func (s *Store) Forget(ctx context.Context, ops []headgate.Op) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	s.drop(ops)
	err := s.source.Forget(ctx, ops)
	s.drop(ops) // What came meanwhile may be of before.
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
