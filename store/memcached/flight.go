package memcached

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// Bounds of what one key gathers in this process.
const (
	// maxWaiting is how many requests may wait for one key's item.
	maxWaiting = 1 << 12
	// maxBatch is how many of them are decided in one cycle.
	maxBatch = 1 << 10
	shards   = 64
)

// work is what is done to an item: decided, given back, or forgotten. It may be done
// again, to another version of the item, when that one could not be written.
type work interface {
	decide(it *item, now headgate.Instant)
}

// request is one caller's work on one item.
type request struct {
	work work
	// hint is the item as the caller has seen it a moment ago, or nil.
	hint *held
	// deadline is that of the caller's context; zero is none.
	deadline time.Time
	// fate is waiting until the work is begun or the caller has left, whichever is first.
	fate atomic.Uint32
	err  error // To be read when done is closed.
	done chan struct{}
}

// What becomes of a request that waits.
const (
	waiting uint32 = iota
	begun
	gone
)

// flights holds the items on which this process works just now. Requests that come
// while one is worked on are done together afterwards, in one cycle of reading and
// writing, so that decisions of one process do not fight each other.
type flights struct {
	store  *Store
	shards [shards]struct {
		mu      sync.Mutex
		flights map[digest]*flight
	}
	group sync.WaitGroup
}

// flight is one item that is worked on, by one cycle at a time.
type flight struct {
	waiting []*request // Under the shard's lock.
	pace    pace       // Of whoever has the cycle.
}

func (f *flights) open(s *Store) {
	f.store = s
	for i := range f.shards {
		f.shards[i].flights = map[digest]*flight{}
	}
}

// wait waits until no work is left that nobody waits for; the store is closed.
func (f *flights) wait() {
	for i := range f.shards {
		f.pass(i)
	}
	f.group.Wait()
}

// pass waits until everybody has left a shard who saw the store open there: what he
// has begun is waited for.
func (f *flights) pass(shard int) {
	f.shards[shard].mu.Lock()
	defer f.shards[shard].mu.Unlock() //nolint:gocritic // because there is nothing to do under the lock: to have had it is all
}

// do does the work on d's item. A lone request goes at once, in the caller's
// goroutine. When ctx ends, do leaves; the work may have been done, or be done still,
// if it was begun.
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

// handOn starts the work on what has gathered meanwhile, if any has.
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

// answer tells those who wait.
func answer(batch []*request, err error) {
	for _, q := range batch {
		q.err = err
		close(q.done)
	}
}

// gather takes what waits. With nothing waiting it ends the flight, and gives nil.
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
