package memcached

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/offset"
)

// clock gives a server's time: this process's monotonic clock plus an estimated offset.
type clock struct {
	given func() headgate.Instant
	start time.Time
	// The goroutine that queries the server's time holds asking.
	asking chan struct{}

	mu       sync.Mutex
	estimate *offset.Estimator
	// due has the times of the next queries, in order: the times that narrow the estimate most. trip
	// is the duration of the last query.
	due  []time.Duration
	trip time.Duration
	// offset is nil until there is an estimate.
	offset atomic.Pointer[time.Duration]
	// learned is when the last answered query began, in nanoseconds of mono.
	learned atomic.Int64
}

func (c *clock) open(given func() headgate.Instant) error {
	var err error
	c.given, c.start, c.asking = given, time.Now(), make(chan struct{}, 1)
	c.estimate, err = offset.New(offset.Config{})
	return err
}

// mono reads the monotonic clock: the time since New.
func (c *clock) mono() time.Duration { return time.Since(c.start) }

// now gives the server's time in whole microseconds. It reports false without an estimate.
func (c *clock) now() (headgate.Instant, bool) {
	if c.given != nil {
		return whole(c.given()), true
	}
	offset := c.offset.Load()
	if offset == nil {
		return 0, false
	}
	return whole(headgate.Instant(c.mono() + *offset)), true
}

func whole(t headgate.Instant) headgate.Instant { return t - t%1000 }

// learn adds a sample: the server showed second at some time between before and after.
func (c *clock) learn(before, after time.Duration, second int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	did := c.estimate.Add(offset.Sample{Before: before, After: after, Second: second})
	if did == offset.Began || did == offset.Restarted {
		c.due = nil
	}
	c.trip = after - before
	c.learned.Store(int64(before))
	if e, known := c.estimate.At(after); known {
		c.offset.Store(&e.Offset)
	}
}

// next gives the wait before the next query. A new estimate needs many queries within a second,
// and a good one needs a query every two seconds.
func (c *clock) next() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.mono()
	for len(c.due) > 0 && c.due[0] < now {
		c.due = c.due[1:]
	}
	if len(c.due) == 0 {
		c.plan(now)
	}
	return max(c.due[0]-now, 0)
}

// plan sets the times of the next queries.
func (c *clock) plan(now time.Duration) {
	e, known := c.estimate.At(now)
	switch {
	case c.given != nil:
		c.due = []time.Duration{now + statsEvery}
	case known && e.Bound <= boundEnough:
		c.due = []time.Duration{c.estimate.Next(now+statsEvery, c.trip)}
	default:
		c.due = make([]time.Duration, sweep)
		c.estimate.Sweep(now, c.trip, c.due)
	}
}

// ahead gives the offset of the server's clock from this machine's wall clock, and its bound.
func (c *clock) ahead() (ahead, bound time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, now := time.Now(), c.mono()
	e, known := c.estimate.At(now)
	if !known {
		return 0, 0, false
	}
	return now + e.Offset - time.Duration(wall.UnixNano()), e.Bound, true
}
