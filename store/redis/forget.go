package redis

import (
	"context"

	"github.com/headgate/headgate"
)

// Forget implements headgate.Store. The ops travel in one pipeline, each as one
// script call.
func (s *Store) Forget(ctx context.Context, ops []headgate.Op) error {
	if len(ops) == 0 {
		return nil
	}
	calls := make([]call, len(ops))
	for i := range ops {
		at := placeOf(ops[i].Key, ops[i].Window)
		calls[i].keys = []string{at.name(), listOf(at.name())}
	}
	for _, result := range s.forget.run(ctx, s.client, calls) {
		if err := result.Error(); err != nil {
			return couldNot("forget what was counted", err)
		}
	}
	return nil
}
