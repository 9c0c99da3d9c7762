package guard

import (
	"context"
	"sync"
	"time"
)

// budget is the context of a decision for the store: the caller's context with the deadline of
// the store's budget.
//
// budget starts no timer before the first call of Done. A store that answers from memory, or a
// store behind an open breaker, never calls Done. For such decisions, context.WithTimeout would
// double the cost. A budget is never reused: after the decision, it has ended.
type budget struct {
	context.Context //nolint:containedctx // It is the caller's, and this is a context too.

	deadline time.Time
	mu       sync.Mutex
	timed    context.Context //nolint:containedctx // As above.
	cancel   context.CancelFunc
	ended    bool
}

// bound gives the context of the store's budget, and a function that ends it.
func (s *set) bound(ctx context.Context) (context.Context, func()) {
	if s.config.StoreTimeout <= 0 {
		return ctx, func() {}
	}
	bounded := newBudget(ctx, s.config.StoreTimeout)
	return bounded, bounded.end
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

// Value implements context.Context. With a timer, Value asks the timer's context first. A derived
// context then finds that context, and needs no goroutine to watch for the end.
func (b *budget) Value(key any) any {
	b.mu.Lock()
	timed := b.timed
	b.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return b.Context.Value(key)
}

// end stops the timer. The budget has ended.
func (b *budget) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	if b.cancel != nil {
		b.cancel()
	}
}
