package guard

import (
	"context"
	"fmt"
	"runtime"

	"github.com/headgate/headgate"
)

// Reset makes a key as if it were new: all units of its limits are back. It returns the state before. Units that requests
// take between the reading and the reset come back too, and are not in that state. Receipts of units from before the reset
// return nothing.
//
// A ban and the attempts that lead to one stay: see Unban. Requests in flight keep their slots, and requests that wait keep
// their departures. The counters of the key in Local are reset in this process only.
//
// This instance forgets the refusals and the prefetched units of the key. Behind a shared store with prefetch, another instance may
// repeat a refusal for up to a second, and spend the units that it has taken ahead. Another instance with
// Config.RefusalsMemory may refuse a key of a domain until its window ends.
//
// After an error, the key may have been reset or not. A second Reset does no harm.
func (g *Guard) Reset(ctx context.Context, name KeyName) (before *KeyState, err error) {
	k, err := g.named(&name)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(k.set)
	if before, err = k.peek(ctx); err != nil {
		return nil, err
	}
	var ops []headgate.Op
	for i := range k.windows {
		if w := &k.windows[i]; w.kind == kindLimit || w.kind == kindHard {
			ops = append(ops, headgate.Op{Key: k.key, Window: w.number})
		}
	}
	for _, store := range k.stores() {
		if err := store.Forget(ctx, ops); err != nil {
			return before, fmt.Errorf("guard: the key was not reset: %w", err)
		}
	}
	for i := range k.windows {
		if k.set.refusals != nil && k.from.number < 0 {
			k.set.refusals.Lift(k.key, k.windows[i].limit.Per)
		}
	}
	g.state.queues.dropSpare(k.key)
	return before, nil
}

// dropSpare drops the booked departures of a key that no request waits for: the store has forgotten them.
func (s *waitQueues) dropSpare(key string) {
	if s.count.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.unlock()
	for id, q := range s.all {
		if id.key != key {
			continue
		}
		for q.TakeTail() != nil { //nolint:revive // because a slot without a waiter is just dropped.
		}
		q.rearm()
	}
}
