package memory

import (
	"context"
	"runtime"

	"github.com/headgate/headgate"
)

// Forget implements headgate.Store. Forget drops the state of every family of policies. It
// locks one shard at a time, and searches once for each Op. The place stays with its key,
// void, until a new key takes the place.
func (s *Store) Forget(_ context.Context, ops []headgate.Op) error {
	if !s.made() {
		return headgate.ErrNotMade
	}
	for i := range ops {
		at := s.table.spotOf(s.hash(ops[i].Key), ops[i].Window)
		sh := &s.table.shards[at.shard]
		sh.lock()
		run := s.table.run(at)
		for j := range uint64(reach) {
			if p := &run[(at.home+j)%uint64(len(run))]; p.tag&^ages == at.tag {
				s.release(p)
			}
		}
		sh.unlock()
	}
	runtime.KeepAlive(s)
	return nil
}

// ReturnLast implements headgate.LastReturner. ReturnLast locks one shard.
func (s *Store) ReturnLast(_ context.Context, r *headgate.Receipt) (bool, error) {
	if !s.made() {
		return false, headgate.ErrNotMade
	}
	if r.Empty() || r.Units() == 0 {
		return false, nil
	}
	at := s.table.spotOf(r.Place[0]&^0xff, uint8(r.Place[0]))
	sh := &s.table.shards[at.shard]
	sh.lock()
	returned := false
	if p := s.takenFrom(at, r); p != nil {
		plan := s.planOf(p)
		booked := plan.IsLast(&p.cell, r) && plan.CellFreeAt(&p.cell) > s.clock.Now()
		returned = booked && s.returned.enter(r) && plan.ReturnLast(&p.cell, r)
	}
	sh.unlock()
	runtime.KeepAlive(s)
	return returned, nil
}
