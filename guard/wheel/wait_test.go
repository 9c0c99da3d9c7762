package wheel

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitStories: one wait with one end, after how long, and how.
func TestWaitStories(t *testing.T) {
	for name, c := range map[string]struct {
		d     time.Duration
		ends  time.Duration // of the context; 0 is before the wait, never is never
		after time.Duration
		err   error
	}{
		"no wait":                         {0, never, 0, nil},
		"less than none":                  {-day, never, 0, nil},
		"no wait, for one who has left":   {0, 0, 0, context.DeadlineExceeded},
		"a wait, for one who has left":    {day, 0, 0, context.DeadlineExceeded},
		"a nanosecond is a tick":          {1, never, ms, nil},
		"a tick":                          {ms, never, ms, nil},
		"a day":                           {day, never, day, nil},
		"left before":                     {day, day - 1, day - 1, context.DeadlineExceeded},
		"left at the moment of departure": {5 * ms, 5 * ms, 5 * ms, nil},
		"left after it, within the tick":  {5*ms - 10, 5*ms - 5, 5*ms - 5, nil},
		"left within the tick before it":  {5*ms - 5, 5*ms - 10, 5*ms - 10, context.DeadlineExceeded},
		"as long as there is":             {never, time.Hour, time.Hour, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				timers, start, ctx := NewTimers(), time.Now(), t.Context()
				if c.ends != never {
					bounded, cancel := context.WithTimeout(ctx, c.ends)
					defer cancel()
					ctx = bounded
				}
				err := timers.Wait(ctx, c.d)
				if after := time.Since(start); after != c.after || !errors.Is(err, c.err) {
					t.Errorf("%v after %v, want %v after %v", err, after, c.err, c.after)
				}
				if timers.Len() != 0 {
					t.Error("it is left in the wheel")
				}
			})
		})
	}
}

// TestWaitPrefersTheDeparture: when it has come, a context that has ended by then
// too changes nothing, whichever of the two a select happens to see; and the next
// one to wait does not find it again.
func TestWaitPrefersTheDeparture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timers := NewTimers()
		ended := make(chan struct{})
		close(ended)
		for range 100 {
			start := time.Now()
			if err := timers.Wait(&slow{t.Context(), ended}, 5*ms); err != nil || time.Since(start) != 10*ms {
				t.Fatalf("%v after %v, want a departure after 10ms", err, time.Since(start))
			}
			if err := timers.Wait(t.Context(), 5*ms); err != nil || time.Since(start) != 15*ms {
				t.Fatalf("%v after %v, want a departure after 15ms", err, time.Since(start))
			}
		}
	})
}

// slow is a context that says after 10 ms that it has ended.
type slow struct {
	context.Context

	done chan struct{}
}

// Done sleeps, and is closed.
func (c *slow) Done() <-chan struct{} {
	time.Sleep(10 * ms) //nolint:forbidigo // In a synctest bubble.
	return c.done
}

// Err is nil before the wait.
func (c *slow) Err() error { return nil }

// TestThousandWaiters: half of them leave before their departure. None departs
// early or late, none is lost, and all are removed.
func TestThousandWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timers, r := NewTimers(), rand.New(rand.NewPCG(1, 2))
		var all sync.WaitGroup
		var departed, left atomic.Int64
		start := time.Now()
		for i := range 1000 {
			d := time.Duration(1 + r.Int64N(int64(10*time.Second)))
			leaves := d + time.Hour
			if i%2 == 0 {
				leaves = time.Duration(r.Int64N(int64(d)))
			}
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), leaves)
				defer cancel()
				err := timers.Wait(ctx, d)
				switch after := time.Since(start); {
				case err == nil && i%2 == 1 && after == timeOf(tickAfter(d)):
					departed.Add(1)
				case errors.Is(err, context.DeadlineExceeded) && i%2 == 0 && after == leaves:
					left.Add(1)
				default:
					t.Errorf("waiter %d of %v, that leaves after %v: %v after %v", i, d, leaves, err, after)
				}
			})
		}
		synctest.Wait()
		if n := timers.Len(); n < 990 { // Those who leave in the first moment excepted.
			t.Errorf("%d wait, of 1000", n)
		}
		all.Wait()
		if departed.Load() != 500 || left.Load() != 500 || timers.Len() != 0 {
			t.Errorf("%d departed and %d left, and %d are in the wheel", departed.Load(), left.Load(), timers.Len())
		}
	})
}

// TestWaitersRace: waiters of many goroutines that are cancelled at about the time
// of their departure. What a pool hands on is never still in use.
func TestWaitersRace(t *testing.T) {
	timers := NewTimers()
	var all sync.WaitGroup
	for g := range uint64(32) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(g, 3))
			for range 30 {
				d := time.Duration(r.Int64N(int64(3 * ms)))
				ctx, cancel := context.WithCancel(t.Context())
				leave := time.AfterFunc(time.Duration(r.Int64N(int64(4*ms))), cancel)
				start := time.Now()
				err := timers.Wait(ctx, d)
				if err == nil && time.Since(start) < d {
					t.Errorf("departed after %v, of %v", time.Since(start), d)
				}
				if err != nil && ctx.Err() == nil {
					t.Errorf("%v, and nobody has left", err)
				}
				leave.Stop()
				cancel()
			}
		})
	}
	all.Wait()
	if timers.Len() != 0 {
		t.Errorf("%d are left in the wheel", timers.Len())
	}
}

// TestWaitAllocatesNothing: neither a departure, nor one that leaves.
func TestWaitAllocatesNothing(t *testing.T) {
	timers, background := NewTimers(), t.Context()
	ended := &endsLater{Context: background, done: make(chan struct{})}
	close(ended.done)
	n := testing.AllocsPerRun(50, func() {
		if err := timers.Wait(background, 1); err != nil {
			t.Error(err)
		}
		ended.asked = false
		if err := timers.Wait(ended, day); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	if n != 0 && !raceDetector {
		t.Errorf("%v allocations", n)
	}
}

// endsLater is a context that ends between the first look at it and the wait.
type endsLater struct {
	context.Context

	done  chan struct{}
	asked bool
}

// Done is closed.
func (c *endsLater) Done() <-chan struct{} { return c.done }

// Err is nil at first.
func (c *endsLater) Err() error {
	if !c.asked {
		c.asked = true
		return nil
	}
	return context.Canceled
}
