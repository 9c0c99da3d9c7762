package memcached

import (
	"context"
	"errors"
	"slices"

	"github.com/headgate/headgate"
)

// oblivion forgets windows of one key. An emptied state stays while receipts of it may exist, to
// void them.
type oblivion struct{ windows []uint8 }

func (o *oblivion) decide(it *item, _ headgate.Instant) {
	for _, s := range it.states {
		if slices.Contains(o.windows, s.window) {
			s.forget()
			it.changed = true
		}
	}
}

// Forget implements headgate.Store. Forget drops all windows of a key in one write.
func (s *Store) Forget(ctx context.Context, ops []headgate.Op) error {
	if err := s.usable(); err != nil {
		return err
	}
	keys := map[digest]*oblivion{}
	for i := range ops {
		d := digestOf(ops[i].Key)
		if keys[d] == nil {
			keys[d] = &oblivion{}
		}
		keys[d].windows = append(keys[d].windows, ops[i].Window)
	}
	var errs []error
	for i := range ops {
		errs = append(errs, s.forgetCounters(ctx, &ops[i]))
	}
	for d, o := range keys {
		if err := s.flights.do(ctx, d, &request{work: o}); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
