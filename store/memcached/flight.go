package memcached

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// Bounds of the requests for one key in this process.
const (
	// maxWaiting bounds the requests that wait for one key's item.
	maxWaiting = 1 << 12
	// maxBatch bounds the requests in one cycle.
	maxBatch = 1 << 10
	shards   = 64
)

// work changes an item: a decision, a return or a Forget. It may run again on another version of
// the item, when the first version could not be written.
type work interface {
	decide(it *item, now headgate.Instant)
}

// request is one caller's work on one item.
type request struct {
	work work
	// hint is the item as the caller has just read it, or nil.
	hint *held
	// deadline is that of the caller's context; zero without one.
	deadline time.Time
	// fate is waiting until the work begins or the caller leaves, whichever comes first.
	fate atomic.Uint32
	err  error // Read err after done is closed.
	done chan struct{}
}

// The states of a request.
const (
	waiting uint32 = iota
	begun
	gone
)

// flights has the items that this process is working on. Requests that arrive meanwhile are done
// together in the next cycle of one read and one write, so that decisions of one process do not
// conflict.
type flights struct {
	store  *Store
	shards [shards]struct {
		mu      sync.Mutex
		flights map[digest]*flight
	}
	group sync.WaitGroup
}

// flight is one item in progress. One cycle at a time works on it.
type flight struct {
	waiting []*request // Guarded by the shard's lock.
	pace    pace       // Belongs to the goroutine with the cycle.
}

func (f *flights) open(s *Store) {
	f.store = s
	for i := range f.shards {
		f.shards[i].flights = map[digest]*flight{}
	}
}

// wait waits until no cycle is in progress. The store is already closed.
func (f *flights) wait() {
	for i := range f.shards {
		f.pass(i)
	}
	f.group.Wait()
}

// pass waits until each goroutine that saw the store open has left the shard. wait then sees its cycle.
func (f *flights) pass(shard int) {
	f.shards[shard].mu.Lock()
	defer f.shards[shard].mu.Unlock() //nolint:gocritic // because there is nothing to do under the lock: to have had it is all
}

// do does the work on d's item. A single request runs at once, in the caller's goroutine. When ctx
// ends, do returns; if the work had begun, it may have been done, or may still be done.
func (f *flights) do(ctx context.Context, d digest, q *request) error {
	sh := &f.shards[d[0]%shards]
	sh.mu.Lock()
	if f.store.closed.Load() {
		sh.mu.Unlock()
		return ErrClosed
	}
	fl := sh.flights[d]
	if fl == nil {
		fl = &flight{}
		sh.flights[d] = fl
		sh.mu.Unlock()
		err := f.store.cycle(ctx, d, []*request{q}, &fl.pace)
		f.handOn(d, fl)
		return err
	}
	if len(fl.waiting) >= maxWaiting {
		sh.mu.Unlock()
		return ErrBusy
	}
	q.done = make(chan struct{})
	q.deadline, _ = ctx.Deadline()
	fl.waiting = append(fl.waiting, q)
	sh.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		if q.fate.CompareAndSwap(waiting, gone) {
			return couldNot("wait for the key's turn; nothing was taken", ctx.Err())
		}
		return couldNot("wait for the answer; hold it as counted", ctx.Err())
	}
}

// handOn starts the work of the waiting requests, if there are any.
func (f *flights) handOn(d digest, fl *flight) {
	sh := &f.shards[d[0]%shards]
	sh.mu.Lock()
	if len(fl.waiting) == 0 {
		delete(sh.flights, d)
		sh.mu.Unlock()
		return
	}
	if f.store.closed.Load() {
		all := fl.waiting
		delete(sh.flights, d)
		sh.mu.Unlock()
		answer(all, ErrClosed)
		return
	}
	f.group.Go(func() {
		for batch := f.gather(d, fl); batch != nil; batch = f.gather(d, fl) {
			f.fly(d, fl, batch)
		}
	})
	sh.mu.Unlock()
}

// answer gives all requests of a batch their result.
func answer(batch []*request, err error) {
	for _, q := range batch {
		q.err = err
		close(q.done)
	}
}

// gather takes the waiting requests. If there are none, it ends the flight and gives nil.
func (f *flights) gather(d digest, fl *flight) []*request {
	sh := &f.shards[d[0]%shards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	n := min(len(fl.waiting), maxBatch)
	if n == 0 {
		delete(sh.flights, d)
		return nil
	}
	batch := fl.waiting[:n:n]
	fl.waiting = fl.waiting[n:]
	return batch
}

// fly does the work of several callers, within the latest of their deadlines.
func (f *flights) fly(d digest, fl *flight, batch []*request) {
	present := make([]*request, 0, len(batch))
	last := time.Time{}
	for _, q := range batch {
		if !q.fate.CompareAndSwap(waiting, begun) {
			continue
		}
		if q.deadline.IsZero() {
			q.deadline = time.Now().Add(f.store.config.Timeout)
		}
		if q.deadline.After(last) {
			last = q.deadline
		}
		present = append(present, q)
	}
	var err error
	if len(present) > 0 {
		ctx, cancel := context.WithDeadline(context.Background(), last)
		err = f.store.cycle(ctx, d, present, &fl.pace)
		cancel()
	}
	answer(batch, err)
}
