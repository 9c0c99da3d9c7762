package wheel

import (
	"context"
	"sync"
	"time"
)

// waiter is one call of Wait. Its channel has room for one departure, so that
// Fire never blocks.
type waiter struct {
	entry    Entry
	departed chan struct{}
}

// newWaiters makes the pool of a Timers. Each has its own: a channel that was made
// in a testing/synctest bubble cannot be used outside of it.
func newWaiters() sync.Pool {
	return sync.Pool{New: func() any {
		w := &waiter{departed: make(chan struct{}, 1)}
		w.entry.Fire = func() { w.departed <- struct{}{} }
		return w
	}}
}

// Wait blocks until d has passed, and gives nil, or until ctx ends, and gives its
// error: a request that leaves then. Should both have happened by the time that
// Wait looks, it departs. With d of 0 or less Wait returns at once, with the error
// of a ctx that has ended. It allocates nothing once its pool has grown.
func (t *Timers) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	w := t.waiters.Get().(*waiter) //nolint:errcheck,forcetypeassert // The pool holds nothing else.
	defer t.waiters.Put(w)
	at := t.start(&w.entry, d)
	select {
	case <-w.departed:
		return nil
	case <-ctx.Done():
	}
	if !t.Stop(&w.entry) {
		<-w.departed // It is there or about to be, and the pool wants the channel empty.
		return nil
	}
	if t.now() >= at {
		return nil
	}
	return ctx.Err()
}
