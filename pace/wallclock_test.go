package pace_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// TestClockSetBackBeforeThePlan: the wall clock is set back to before the start of the plan. The
// plan stays in use, and no caller waits for longer than two windows.
func TestClockSetBackBeforeThePlan(t *testing.T) {
	for _, back := range []time.Duration{3 * time.Second, time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				toEdge(time.Second)
				var wall setClock
				p := static(t, 3, pace.Config{Wall: wall.now})
				sleep(1500 * time.Millisecond)
				wall.set(-back)
				sleep(time.Second)
				began := time.Now()
				o := ask(p, 1, pace.Forever)
				sleep(2 * time.Second)
				synctest.Wait()
				if !o.notified || o.err != nil {
					t.Errorf("served %v, %v, 2 s after the clock was set back by %v", o.notified, o.err, back)
				}
				sleep(2 * back)
				synctest.Wait()
				if o.notified {
					t.Logf("it was served after %v", o.at.Sub(began))
				}
			})
		})
	}
}

// TestClockThereAndBackKeepsThePlan: the wall clock is ahead for a moment, which starts a plan.
// When the clock is right again, that plan or the one before it is in use.
func TestClockThereAndBackKeepsThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		var wall setClock
		p, to := scriptedPacer(t, pace.Config{Wall: wall.now})
		to.Assign(pace.Assignment{Plan: even(t, 3, time.Second, 1, 0), Revision: 1})
		later := headgate.Instant(time.Now().Add(time.Hour).Truncate(time.Hour).UnixNano())
		to.Assign(pace.Assignment{Plan: even(t, 2, time.Second, 1, 0), From: later, Revision: 2})
		sleep(1500 * time.Millisecond)
		wall.set(2 * time.Hour)
		sleep(time.Second)
		p.TryAcquire()
		wall.set(-2 * time.Hour)
		sleep(2500 * time.Millisecond)
		if n := burst(p); n != 2 && n != 3 {
			t.Errorf("%d in a second, want 2 or 3", n)
		}
	})
}

// TestClockSetBackKeepsTheCount: given units stay counted when the clock changes.
func TestClockSetBackKeepsTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		var wall setClock
		p := static(t, 3, pace.Config{Wall: wall.now})
		given := burst(p)
		wall.set(-time.Hour)
		sleep(1500 * time.Millisecond)
		if got := p.Stats().Acquired; got != uint64(given) {
			t.Errorf("%d are counted of %d", got, given)
		}
	})
}

// TestWallTimesBeforeTheFirstPlan: a time without a monotonic reading, for example from a
// header, has the same meaning before and after the first plan.
func TestWallTimesBeforeTheFirstPlan(t *testing.T) {
	t.Run("brake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, to := scriptedPacer(t, pace.Config{})
			p.Brake(pace.Brake{Until: time.Now().Add(2 * time.Second).Round(0), Reason: "429 Retry-After"})
			to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 1})
			sleep(10500 * time.Millisecond)
			if n := burst(p); n != 10 {
				t.Errorf("%d 10 s after a brake of 2 s; it is said to last until %v", n, p.Stats().BrakedUntil)
			}
		})
	})
	t.Run("brake of all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, to := scriptedPacer(t, pace.Config{})
			to.Brake(pace.Brake{Until: time.Now().Add(2 * time.Second).Round(0)})
			to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 1})
			sleep(10500 * time.Millisecond)
			if n := burst(p); n != 10 {
				t.Errorf("%d 10 s after a brake of 2 s", n)
			}
		})
	})
	t.Run("valid", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, to := scriptedPacer(t, pace.Config{})
			to.ValidUntil(time.Now().Add(2 * time.Second).Round(0))
			to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 1})
			sleep(10500 * time.Millisecond)
			if n := burst(p); n != 0 || !p.Stats().Lost {
				t.Errorf("%d 8 s after what was assigned ended", n)
			}
		})
	})
}

// TestOpensAfterTheClockWasSet: a window was skipped because the clock was set. Predicted times
// are still in the future.
func TestOpensAfterTheClockWasSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		var wall setClock
		p := static(t, 3, pace.Config{Wall: wall.now})
		sleep(1200 * time.Millisecond)
		burst(p)
		wall.set(500 * time.Millisecond)
		sleep(time.Second) // the window after the one that ended is skipped
		if burst(p) != 0 {
			t.Fatal("a window that is half over was opened")
		}
		now := time.Now()
		if got := opensOf(t, p.Acquire(t.Context(), 0)); !got.Equal(now.Add(800 * time.Millisecond)) { // 300 ms, 500 ms ahead
			t.Errorf("it says %v from now by the old clock, want 800ms", got.Sub(now))
		}
		if o := ask(p, 1, 200*time.Millisecond); !o.notified {
			t.Error("who cannot be served in time waits")
		}
		o := ask(p, 1, 301*time.Millisecond)
		sleep(time.Second)
		synctest.Wait()
		if !o.notified || o.err != nil || o.at.Sub(now) != 300*time.Millisecond {
			t.Errorf("%v, %v after %v", o.notified, o.err, o.at.Sub(now))
		}
	})
}

// TestOpensAfterASlewAndAPlan: the wall clock was corrected by a millisecond, and a plan came.
// The predicted time is still in the future.
func TestOpensAfterASlewAndAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		var wall setClock
		p, to := scriptedPacer(t, pace.Config{Wall: wall.now})
		to.Assign(pace.Assignment{Plan: even(t, 3, time.Second, 1, 0), Revision: 1})
		burst(p)
		sleep(300 * time.Millisecond)
		wall.set(time.Millisecond)
		to.Assign(pace.Assignment{Plan: even(t, 4, time.Second, 1, 0), Revision: 2})
		now := time.Now()
		if got := opensOf(t, p.Acquire(t.Context(), 0)); got.Before(now) {
			t.Errorf("it says %v from now", got.Sub(now))
		}
		if o := ask(p, 1, 100*time.Millisecond); !o.notified {
			t.Error("who cannot be served in time waits")
		}
	})
}

// TestClockThatRunsFast: for every change of the clock, no interval of one window's length has
// more than the parts of two windows.
func TestClockThatRunsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		var wall setClock
		p := static(t, 10, pace.Config{Wall: wall.now})
		sleep(999 * time.Millisecond)
		began := time.Now()
		n := burst(p)
		for range 2 {
			wall.set(100 * time.Millisecond)
			for n += burst(p); !p.TryAcquire(); {
				sleep(time.Millisecond)
			}
			n += 1 + burst(p)
			if elapsed := time.Since(began); n > 20 && elapsed < time.Second {
				t.Errorf("%d within %v", n, elapsed)
			}
		}
	})
}

// TestFastWindowsAreLearnt: PID counts a window as used up when its last permit was taken early
// and a caller waits for another one. It treats a window with a refused caller in the same way.
func TestFastWindowsAreLearnt(t *testing.T) {
	last := func(waits bool) (sums []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			toEdge(time.Second)
			p := static(t, 100, pace.Config{Smoothing: pace.PID})
			for range 20 { // Half of the limit, evenly spread: PID then opens permits five times as fast.
				for range 50 {
					p.TryAcquire()
					sleep(20 * time.Millisecond)
				}
			}
			for range 4 {
				edge := time.Now()
				var mu sync.Mutex
				var latest time.Duration
				for range 110 {
					maxWait := pace.Forever
					if !waits {
						maxWait = 500 * time.Millisecond
					}
					p.AcquireFunc(1, maxWait, func(_ headgate.Instant, err error) {
						mu.Lock()
						defer mu.Unlock()
						if at := time.Since(edge); err == nil && at < time.Second {
							latest = max(latest, at)
						}
					})
					sleep(3 * time.Millisecond)
				}
				sleep(time.Until(edge.Add(time.Second)))
				mu.Lock()
				sums = append(sums, latest)
				mu.Unlock()
			}
		})
		return sums
	}
	waited, refused := last(true), last(false)
	if waited[1] < refused[1]-50*time.Millisecond {
		t.Errorf("the last permits were had after %v when the others waited, %v when they were refused", waited, refused)
	}
}

// TestWallTimesAfterTheClockWasSet: a wall time is converted by the present wall clock, not by
// that of the window's start, which may be long ago.
func TestWallTimesAfterTheClockWasSet(t *testing.T) {
	for _, step := range []time.Duration{-time.Minute, time.Minute} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				toEdge(time.Hour)
				var wall setClock
				p, to := scriptedPacer(t, pace.Config{Wall: wall.now})
				to.Assign(pace.Assignment{Plan: even(t, 3600, time.Hour, 1, 0), Revision: 1})
				wall.set(step)
				to.ValidUntil(wall.now().Add(5 * time.Second).Time())
				sleep(4 * time.Second)
				if !p.TryAcquire() {
					t.Error("what is valid for 5 s is not after 4 s")
				}
				sleep(2 * time.Second)
				if p.TryAcquire() {
					t.Error("what is valid for 5 s is after 6 s")
				}
				to.ValidUntil(time.Time{})
				p.Brake(pace.Brake{Until: wall.now().Add(5 * time.Second).Time(), Percent: 0})
				if p.TryAcquire() {
					t.Error("a brake of 5 s does not hold")
				}
				if got := p.Stats().BrakedUntil.Sub(wall.now().Time()); got != 5*time.Second {
					t.Errorf("a brake of 5 s is said to last for %v", got)
				}
			})
		})
	}
}

// TestClockSetBeforeAPlanOfOtherWindows: a plan with other windows starts within a window of the
// plan before. A small change of the wall clock delays that start by as much, not until the end
// of the long window. All other instances use the new plan.
func TestClockSetBeforeAPlanOfOtherWindows(t *testing.T) {
	for _, step := range []time.Duration{0, -time.Millisecond, time.Millisecond, -90 * time.Millisecond, 90 * time.Millisecond} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				toEdge(time.Hour)
				var wall setClock
				p, to := scriptedPacer(t, pace.Config{Wall: wall.now})
				to.Assign(pace.Assignment{Plan: even(t, 3600, time.Hour, 1, 0), Revision: 1})
				from := headgate.Instant(time.Now().Add(10 * time.Second).UnixNano())
				to.Assign(pace.Assignment{Plan: even(t, 5, time.Second, 1, 0), From: from, Revision: 2})
				sleep(5 * time.Second)
				wall.set(step)
				sleep(5 * time.Second)
				var at []time.Time
				for range 2000 { // The pacer is used all the time, so it notices the edge at once.
					if time.Since(from.Time()) > 200*time.Millisecond && p.TryAcquire() {
						at = append(at, time.Now())
					}
					p.Stats()
					sleep(time.Millisecond)
				}
				if n := most(at, time.Second); n > 10 || len(at) < 5 {
					t.Errorf("%d in 1.8 s, %d of them within a second, where 5 a second go", len(at), n)
				}
				if s := p.Stats(); s.Revision != 2 {
					t.Errorf("revision %d holds", s.Revision)
				}
			})
		})
	}
}

// TestClockSetAtRandom: for every change of the clock, no interval of one window's length, less
// a thousandth, has more than two parts. No interval of two windows has none, unless the clock
// is set again in it.
func TestClockSetAtRandom(t *testing.T) {
	const limit = 5
	for seed := range uint64(30) {
		often := []int{3500, 700}[seed%2] // in ms, about
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			toEdge(time.Second)
			var wall setClock
			p := static(t, limit, pace.Config{Wall: wall.now, Logger: quiet()})
			at := []time.Time{time.Now()}
			for pass, next := 0, 0; pass < 20_000; pass++ {
				if pass >= next {
					next = pass + often + random.IntN(often)
					span := []time.Duration{time.Millisecond, 150 * time.Millisecond, 3 * time.Second, time.Hour}[random.IntN(4)]
					wall.set(time.Duration(random.Int64N(int64(2*span))) - span)
				}
				for p.TryAcquire() {
					at = append(at, time.Now())
				}
				sleep(time.Millisecond)
			}
			for i, longest := 1, 2*time.Second+2*time.Millisecond; i < len(at); i++ {
				if gap := at[i].Sub(at[i-1]); gap > longest && often > 3000 {
					t.Errorf("seed %d: nothing for %v", seed, gap)
				}
			}
			if n := most(at, 999*time.Millisecond); n > 2*limit+1 { // one of them is the first of the list
				t.Errorf("seed %d: %d within 999 ms", seed, n)
			}
		})
	}
}
