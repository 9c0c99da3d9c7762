package guard

import (
	"context"
	"sync"
	"time"
)

// budget is the time that the store has for a decision, as a context: the caller's,
// and over at the deadline at the latest.
//
// It starts no timer before somebody asks for Done. A store that answers from
// memory, or not at all because it is known to be away, never does; to a decision
// of theirs context.WithTimeout would add as much again as it takes. It is never
// used twice: who keeps it after the decision finds that it has ended.
type budget struct {
	context.Context //nolint:containedctx // It is the caller's, and this is a context too.

	deadline time.Time
	mu       sync.Mutex
	timed    context.Context //nolint:containedctx // As above.
	cancel   context.CancelFunc
	ended    bool
}

func newBudget(ctx context.Context, d time.Duration) *budget {
	return &budget{Context: ctx, deadline: machineTime().Add(d)}
}

// Deadline implements context.Context.
func (b *budget) Deadline() (time.Time, bool) {
	if callers, bounded := b.Context.Deadline(); bounded && callers.Before(b.deadline) {
		return callers, true
	}
	return b.deadline, true
}

// Done implements context.Context.
func (b *budget) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timed == nil {
		b.timed, b.cancel = context.WithDeadline(b.Context, b.deadline)
		if b.ended {
			b.cancel()
		}
	}
	return b.timed.Done()
}

// Err implements context.Context.
func (b *budget) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.timed != nil:
		return b.timed.Err()
	case b.Context.Err() != nil:
		return b.Context.Err()
	case b.ended:
		return context.Canceled
	case !machineTime().Before(b.deadline):
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context. Once there is a timer it is asked first: a
// context that is derived from this one finds it so, and needs no goroutine to
// watch for the end.
func (b *budget) Value(key any) any {
	b.mu.Lock()
	timed := b.timed
	b.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return b.Context.Value(key)
}

// end stops the timer. The budget is over.
func (b *budget) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	if b.cancel != nil {
		b.cancel()
	}
}
