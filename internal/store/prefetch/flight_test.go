package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
)

// link is a source at a distance: each way takes so long, in virtual time.
func link(t *testing.T, way time.Duration) *source {
	t.Helper()
	start := time.Now()
	s := newSource(t, func() headgate.Instant { return epoch.Add(time.Since(start)) })
	s.way = func(ctx context.Context) error {
		select {
		case <-time.After(way):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s
}

func perSecond(count int64, hold time.Duration) headgate.Policy {
	return headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: count, Per: time.Second}, Hold: hold}
}

func take(ctx context.Context, s *prefetch.Store, id headgate.PolicyID, cost int64) (headgate.Decision, error) {
	var d headgate.Decision
	err := s.Take(ctx, &headgate.Op{Key: "k", Policy: id, Cost: cost}, &d)
	return d, err
}

// warm sends requests one after another, so that the Store learns the demand.
func warm(t *testing.T, s *prefetch.Store, id headgate.PolicyID, n int) {
	t.Helper()
	for range n {
		if _, err := take(t.Context(), s, id, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// TestColdKeysCostWhatTheyDid: no units are prefetched for a key with one request a second.
func TestColdKeysCostWhatTheyDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := link(t, time.Millisecond)
		s := behind(t, far, prefetch.Config{})
		id := prepare(t, s, perSecond(100, 50*time.Millisecond))
		for range 20 {
			warm(t, s, id, 1)
			rest(time.Second)
		}
		if st := s.Stats(); far.calls.Load() != 20 || st.Asked != 20 || st.Granted != 0 {
			t.Errorf("20 requests cost %d calls: %+v", far.calls.Load(), st)
		}
	})
}

// TestOneFlightForAllWhoWait: requests that find the stash empty at one moment wait for one
// call. Requests that arrive during that call wait for a second one.
func TestOneFlightForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := link(t, 5*time.Millisecond)
		s := behind(t, far, prefetch.Config{})
		p := perSecond(10_000, 200*time.Millisecond)
		p.Batch = 1
		id := prepare(t, s, p)
		var passed atomic.Int64
		var all sync.WaitGroup
		began := time.Now()
		for range 100 {
			all.Go(func() {
				if d, err := take(t.Context(), s, id, 2); err == nil && d.Verdict == headgate.Allow {
					passed.Add(1)
				}
			})
		}
		all.Wait()
		if calls := far.calls.Load(); passed.Load() != 100 || calls > 5 || time.Since(began) > 50*time.Millisecond {
			t.Errorf("%d of 100 passed after %v and %d calls", passed.Load(), time.Since(began), calls)
		}
	})
}

// TestFlightsOutliveTheirCallers: a caller stops waiting when its context ends. The units of
// its flight serve the next caller.
func TestFlightsOutliveTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := link(t, 50*time.Millisecond)
		s := behind(t, far, prefetch.Config{})
		p := perSecond(1000, 500*time.Millisecond)
		p.Batch = 5
		id := prepare(t, s, p)
		for range 2 { // The caller that began the flight, and a caller that waits for the same flight.
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			began := time.Now()
			_, err := take(ctx, s, id, 1)
			if elapsed := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || elapsed != 5*time.Millisecond {
				t.Errorf("after %v: %v", elapsed, err)
			}
			cancel()
		}
		rest(100 * time.Millisecond)
		began := time.Now()
		for range 5 {
			if d, err := take(t.Context(), s, id, 1); err != nil || d.Verdict != headgate.Allow || time.Since(began) > 0 {
				t.Errorf("the units of an earlier flight: %v, %v after %v", d.Verdict, err, time.Since(began))
			}
		}
		synctest.Wait()
		if n := far.calls.Load(); n > 2 { // The next stash may be requested already.
			t.Errorf("%d calls", n)
		}
	})
}

// TestForgottenInFlight: a grant that was requested before its key was forgotten is void. It
// may have been decided before or after.
func TestForgottenInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := link(t, 50*time.Millisecond)
		s := behind(t, far, prefetch.Config{})
		p := perSecond(1000, 500*time.Millisecond)
		p.Batch = 5
		id := prepare(t, s, p)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if _, err := take(ctx, s, id, 1); err == nil {
			t.Error("the answer came before the source could give it")
		}
		if err := s.Forget(t.Context(), []headgate.Op{{Key: "k"}}); err != nil {
			t.Error(err)
		}
		rest(100 * time.Millisecond)
		began := time.Now()
		warm(t, s, id, 1)
		if time.Since(began) != 100*time.Millisecond || far.grants.Load() != 2 {
			t.Errorf("answered after %v and %d grants", time.Since(began), far.grants.Load())
		}
	})
}

// TestWhoGivesUp: a group of two keys leaves when only one of them has units. The group takes
// nothing.
func TestWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := link(t, 20*time.Millisecond)
		s := behind(t, far, prefetch.Config{})
		p := perSecond(1000, 500*time.Millisecond)
		p.Batch = 5
		id := prepare(t, s, p)
		warm(t, s, id, 1)
		before := stashLeft(s)
		ops := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, {Key: "l", Policy: id, Cost: 1}, {Key: "m", Policy: id, Cost: 1}}
		for _, patience := range []time.Duration{time.Millisecond, 30 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if err := s.Apply(ctx, ops, make([]headgate.Decision, 3)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: %v", patience, err)
			}
			cancel()
		}
		rest(100 * time.Millisecond)
		synctest.Wait()
		// The second group waited for the flight of the first: 2 x (1 + 5) units arrived.
		if after := stashLeft(s); after != before+12 || s.Stats().Spent != 1 {
			t.Errorf("%d were held, and now %d: %+v", before, after, s.Stats())
		}
		if n := s.Waiting(); n != 0 {
			t.Errorf("requests still wait for %d keys", n)
		}
	})
}

// TestWaitingGroupsHoldNothing: a group has spent units under one key and waits for units of
// another key. Meanwhile the spent units serve other groups.
func TestWaitingGroupsHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := behind(t, link(t, 20*time.Millisecond), prefetch.Config{})
		p := perSecond(1000, 500*time.Millisecond)
		p.Batch = 1
		id := prepare(t, s, p)
		warm(t, s, id, 1)
		var all sync.WaitGroup
		all.Go(func() {
			ops := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, {Key: "l", Policy: id, Cost: 1}}
			if err := s.Apply(t.Context(), ops, make([]headgate.Decision, 2)); err != nil {
				t.Error(err)
			}
		})
		rest(5 * time.Millisecond)
		began := time.Now()
		warm(t, s, id, 1)
		if time.Since(began) > 0 {
			t.Errorf("a unit of a waiting group was served after %v", time.Since(began))
		}
		all.Wait()
	})
}

// TestSmallAmongGreat: a small request is not refused because a large request of the same
// flight is.
func TestSmallAmongGreat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := link(t, 20*time.Millisecond)
		s, other := behind(t, far, prefetch.Config{}), behind(t, far, prefetch.Config{})
		p := perSecond(1000, 500*time.Millisecond)
		p.Batch = 1
		id := prepare(t, s, p)
		if _, err := take(t.Context(), other, prepare(t, other, p), 990); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for _, cost := range []int64{50, 5} {
			all.Go(func() {
				d, err := take(t.Context(), s, id, cost)
				if err != nil || (d.Verdict == headgate.Deny) != (cost == 50) {
					t.Errorf("of 10 that are left, %d: %v, %v", cost, d.Verdict, err)
				}
			})
			rest(time.Millisecond)
		}
		all.Wait()
	})
}

// uncounted is a full store that lets requests pass uncounted.
type uncounted struct{ *source }

func (u uncounted) Grant(_ context.Context, ops []headgate.Op, _ []int64, decisions []headgate.Decision) error {
	for i := range ops {
		decisions[i] = headgate.Decision{Verdict: headgate.Allow, Reason: headgate.StoreFull}
	}
	return nil
}

// TestUncountedGrants: grants of a full store fill no stash. The source decides each request.
func TestUncountedGrants(t *testing.T) {
	near := newSource(t, nil)
	s := behind(t, uncounted{near}, prefetch.Config{})
	p := perSecond(1000, 500*time.Millisecond)
	p.Batch = 50
	id := prepare(t, s, p)
	warm(t, s, id, 5)
	if st := s.Stats(); st.Asked != 5 || st.Granted != 0 || near.calls.Load() != 5 {
		t.Errorf("%+v", st)
	}
}

// TestSourceAway: an error of the source goes to all waiting requests at once. The failed
// prefetch is not repeated in a loop.
func TestSourceAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		far := link(t, 5*time.Millisecond)
		s := behind(t, far, prefetch.Config{})
		p := perSecond(10_000, 100*time.Millisecond)
		id := prepare(t, s, p)
		warm(t, s, id, 20)
		far.way = func(context.Context) error { rest(time.Millisecond); return away }
		before := far.calls.Load()
		for range 100 {
			if _, err := take(t.Context(), s, id, 1); err != nil && !errors.Is(err, away) {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := take(t.Context(), s, id, 1); !errors.Is(err, away) {
					t.Errorf("while the source is unreachable: %v", err)
				}
			})
		}
		all.Wait()
		if n := far.calls.Load() - before; n > 152 {
			t.Errorf("150 requests made %d calls of an unreachable source", n)
		}
	})
}

// TestSilentSource: a flight ends with its own timeout. Close ends a flight at once.
func TestSilentSource(t *testing.T) {
	for name, want := range map[string]time.Duration{"Timeout": 300 * time.Millisecond, "Close": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far := link(t, time.Hour)
				s := behind(t, far, prefetch.Config{Timeout: 300 * time.Millisecond})
				p := perSecond(1000, 500*time.Millisecond)
				p.Batch = 5
				id := prepare(t, s, p)
				if name == "Close" {
					time.AfterFunc(100*time.Millisecond, s.Close)
				}
				began := time.Now()
				if _, err := take(t.Context(), s, id, 1); err == nil || time.Since(began) != want {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

// TestClosedStoreAsks: a closed Store sends each request to the source, and starts no flight.
func TestClosedStoreAsks(t *testing.T) {
	near := newSource(t, nil)
	s := behind(t, near, prefetch.Config{})
	p := perSecond(1000, 500*time.Millisecond)
	p.Batch = 5
	id := prepare(t, s, p)
	s.Close()
	warm(t, s, id, 3)
	if near.grants.Load() != 0 || near.calls.Load() != 3 {
		t.Errorf("%d calls, and %d of these for prefetched units", near.calls.Load(), near.grants.Load())
	}
}

// TestFlightsAreBounded: beyond MaxFlights, each caller calls the source.
func TestFlightsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := link(t, 10*time.Millisecond)
		s := behind(t, far, prefetch.Config{MaxFlights: 3})
		p := perSecond(1000, 500*time.Millisecond)
		p.Batch = 5
		id := prepare(t, s, p)
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				var d headgate.Decision
				op := headgate.Op{Key: fmt.Sprint(i), Policy: id, Cost: 1}
				if err := s.Take(t.Context(), &op, &d); err != nil || d.Verdict != headgate.Allow {
					t.Errorf("%v, %v", d.Verdict, err)
				}
			})
		}
		all.Wait()
		if far.grants.Load() != 3 || far.calls.Load() != 40 {
			t.Errorf("%d calls, and %d of these for prefetched units", far.calls.Load(), far.grants.Load())
		}
	})
}

// TestLongLinks: with steady demand and holds of a few round trips, few requests wait for the
// network, and the source is called seldom.
func TestLongLinks(t *testing.T) {
	for _, c := range []struct {
		way, hold time.Duration
		waits     float64 // The largest part of the requests that may wait.
		calls     float64 // The largest number of calls of the source for each request.
	}{
		{50 * time.Millisecond, 500 * time.Millisecond, 0.02, 0.05},
		{50 * time.Millisecond, 350 * time.Millisecond, 0.05, 0.05},
		{250 * time.Microsecond, 5 * time.Millisecond, 0.02, 0.4},
		{250 * time.Microsecond, 50 * time.Millisecond, 0.02, 0.05},
	} {
		synctest.Test(t, func(t *testing.T) {
			far := link(t, c.way)
			s := behind(t, far, prefetch.Config{})
			id := prepare(t, s, perSecond(100_000, c.hold))
			var waited, asked atomic.Int64
			var all sync.WaitGroup
			for range 2000 { // 2,000 requests a second are sent, also while earlier ones wait.
				all.Go(func() {
					for second := range 5 {
						rest(time.Second)
						began := time.Now()
						if _, err := take(t.Context(), s, id, 1); err != nil {
							t.Error(err)
						}
						if second == 0 {
							continue // The Store is still learning the demand.
						}
						if time.Since(began) > 0 {
							waited.Add(1)
						}
						asked.Add(1)
					}
				})
				rest(500 * time.Microsecond)
			}
			all.Wait()
			n := float64(asked.Load())
			st := s.Stats()
			t.Logf("way %v, hold %v: %.1f %% of %d requests wait, %.3f calls a request, %.1f %% of the units expire",
				c.way, c.hold, 100*float64(waited.Load())/n, asked.Load(), float64(far.calls.Load())/n, 100*float64(st.Expired)/n)
			if float64(waited.Load())/n > c.waits || float64(far.calls.Load())/n > c.calls {
				t.Errorf("%d of %v requests wait, for %d calls", waited.Load(), n, far.calls.Load())
			}
		})
	}
}
