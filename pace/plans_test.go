package pace_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/schedule"
)

// TestFirstPlanAhead: a first plan that is told before it begins has whole windows from then
// on, whenever the first call comes.
func TestFirstPlanAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		sleep(300 * time.Millisecond)
		p, to := scriptedPacer(t, pace.Config{})
		from := time.Now().Truncate(time.Second).Add(2 * time.Second)
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), From: headgate.Instant(from.UnixNano()), Revision: 1})
		if n := burst(p); n != 0 {
			t.Fatalf("%d before the plan begins", n)
		}
		sleep(time.Until(from.Add(900 * time.Millisecond)))
		if n := burst(p); n != 10 {
			t.Errorf("%d in the plan's first window, want 10", n)
		}
	})
}

// TestFirstWindowOfLongWindows: what is left of a long first window has its part of the units,
// also when units times nanoseconds do not fit in 63 bits.
func TestFirstWindowOfLongWindows(t *testing.T) {
	for _, c := range []struct {
		limit int64
		per   time.Duration
	}{
		{1000, time.Millisecond},
		{1000, time.Second},
		{schedule.MaxLimit, time.Second},
		{2_000_000, time.Hour},
		{3_000_000_000, time.Hour},
		{200_000_000, 24 * time.Hour},
		{10_000_000, 30 * 24 * time.Hour},
		{1_000_000, 365 * 24 * time.Hour},
		{schedule.MaxLimit, schedule.MaxPer},
	} {
		for _, tenths := range []int64{1, 5, 9} {
			t.Run(fmt.Sprint(c.limit, " per ", c.per, " at ", tenths, " tenths"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					plan := even(t, c.limit, c.per, 1, 0)
					var wall setClock
					start := plan.Start(plan.Window(headgate.Instant(time.Now().UnixNano())))
					wall.set(start.Add(c.per / 10 * time.Duration(tenths)).Sub(headgate.Instant(time.Now().UnixNano())))
					p, to := scriptedPacer(t, pace.Config{Wall: wall.now})
					to.Assign(pace.Assignment{Plan: plan, Revision: 1})
					want := float64(c.limit) / 10 * float64(10-tenths)
					if got := float64(p.Stats().Part); got > want+1 || got < want*0.99-1 {
						t.Errorf("%.0f units, want %.0f", got, want)
					}
				})
			})
		}
	}
}

// TestBurstAfterALoss: with permits spread, those that opened while the source was lost do
// not go all at once when it is back.
func TestBurstAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{Smoothing: pace.EvenSpread})
		to.Assign(pace.Assignment{Plan: even(t, 10_000, time.Second, 1, 0), Revision: 1})
		to.ValidUntil(time.Now().Add(-time.Second))
		served := 0
		for range 20_000 {
			p.AcquireFunc(1, pace.Forever, func(headgate.Instant, error) { served++ })
		}
		sleep(900 * time.Millisecond)
		to.ValidUntil(time.Time{})
		sleep(time.Millisecond)
		synctest.Wait()
		if served > 120 {
			t.Errorf("%d in the millisecond after the source was back", served)
		}
	})
}

// TestSamePlanAgainCostsNothing: a source that tells the same plan under a newer revision, from
// a time that has passed, does not take away what is left of the window.
func TestSamePlanAgainCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		from := headgate.Instant(time.Now().UnixNano())
		plan := even(t, 10, time.Second, 1, 0)
		to.Assign(pace.Assignment{Plan: plan, From: from, Revision: 1})
		given := 0
		for revision := int64(2); revision < 22; revision++ {
			sleep(500 * time.Millisecond)
			to.Assign(pace.Assignment{Plan: plan, From: from, Revision: revision})
			sleep(100 * time.Millisecond)
			given += burst(p)
			sleep(400 * time.Millisecond)
		}
		if given < 190 {
			t.Errorf("%d of 200", given)
		}
	})
}

// TestLatePlanCostsNothing: a plan that comes after its time leaves of the window what both
// it and the plan before it give.
func TestLatePlanCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		from := headgate.Instant(time.Now().UnixNano())
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), From: from, Revision: 1})
		for range 3 {
			p.TryAcquire()
		}
		sleep(100 * time.Millisecond)
		to.Assign(pace.Assignment{Plan: even(t, 8, time.Second, 1, 0), From: from, Revision: 2})
		if n := burst(p); n != 5 {
			t.Errorf("%d more of a window with 8, of which 3 were given", n)
		}
	})
}

// TestEarlierPlanReplacesTheFirst: a first plan that has not begun is replaced by one that
// begins sooner, as any other is.
func TestEarlierPlanReplacesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		at := func(d time.Duration) headgate.Instant { return headgate.Instant(time.Now().Add(d).UnixNano()) }
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), From: at(time.Hour), Revision: 1})
		to.Assign(pace.Assignment{Plan: even(t, 7, time.Second, 1, 0), From: at(2 * time.Second), Revision: 2})
		sleep(5500 * time.Millisecond)
		if n := burst(p); n != 7 {
			t.Errorf("%d, want 7", n)
		}
	})
}

// TestDemandOfTheImpossible: what no window ever has is not demand.
func TestDemandOfTheImpossible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 1})
		for range 3 {
			if err := p.AcquireN(t.Context(), math.MaxInt64, 0); !errors.Is(err, pace.ErrTooLarge) {
				t.Error(err)
			}
			p.TryAcquireN(math.MaxInt64)
		}
		p.TryAcquire()
		sleep(time.Second)
		if got := to.Demand(); got != 1 {
			t.Errorf("the demand is said to be %d, want 1", got)
		}
	})
}

// TestUnitsBeyondNumbers: sums of units do not wrap around, while no limit bounds them.
func TestUnitsBeyondNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 0, time.Second, 1, 0), Revision: 1})
		a, b := ask(p, math.MaxInt64-5, pace.Forever), ask(p, 1<<62, pace.Forever)
		if c := ask(p, 1, time.Minute); !c.told {
			t.Error("who waits for a limit of 0 for a minute is not refused at once")
		}
		sleep(2 * time.Second)
		if got := to.Demand(); got < 0 {
			t.Errorf("the demand is said to be %d", got)
		}
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 2})
		sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(a.err, pace.ErrTooLarge) || !errors.Is(b.err, pace.ErrTooLarge) {
			t.Errorf("%v, %v", a.err, b.err)
		}
		if n := burst(p); n != 10 {
			t.Errorf("%d then", n)
		}
	})
}

// TestZeroPlan: the zero Plan admits nothing; it ends no program.
func TestZeroPlan(t *testing.T) {
	for name, plan := range map[string]schedule.Plan{
		"zero": {}, "no instances": {Limit: 10, Per: time.Second}, "negative": {Limit: -1, Per: -1, Instances: -1, Index: 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := script()
			p, err := pace.New(pace.Config{Source: s, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			to := <-s.to
			func() {
				defer func() {
					if why := recover(); why != nil {
						t.Fatalf("it panics, with its lock held: %v", why)
					}
				}()
				to.Assign(pace.Assignment{Plan: plan, Revision: 1})
			}()
			if p.TryAcquire() {
				t.Error("a permit of nothing")
			}
			p.Close()
		})
	}
}

// TestShortWindowsAreUsed: with permits spread over short windows, those who wait use them all.
func TestShortWindowsAreUsed(t *testing.T) {
	for _, c := range []struct {
		per   time.Duration
		limit int64
	}{{time.Millisecond, 100}, {5 * time.Millisecond, 100}, {10 * time.Millisecond, 1000}, {100 * time.Millisecond, 1000}, {time.Second, 10_000}} {
		t.Run(c.per.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				toEdge(time.Second)
				p, to := scriptedPacer(t, pace.Config{Smoothing: pace.EvenSpread, MaxWaiters: 1_000_000})
				to.Assign(pace.Assignment{Plan: even(t, c.limit, c.per, 1, 0), Revision: 1})
				const windows = 5
				var served atomic.Int64
				for range windows * c.limit * 2 {
					p.AcquireFunc(1, pace.Forever, func(_ headgate.Instant, err error) {
						if err == nil {
							served.Add(1)
						}
					})
				}
				sleep(windows*c.per - 1)
				synctest.Wait()
				if n := served.Load(); n < windows*c.limit*99/100 || n > windows*c.limit {
					t.Errorf("%d of %d", n, windows*c.limit)
				}
			})
		})
	}
}

// TestLatePlanNeverOpensTwice: plans that come shortly after the edge from which they hold do
// not begin the window again.
func TestLatePlanNeverOpensTwice(t *testing.T) {
	for _, wait := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
		t.Run(wait.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				toEdge(time.Second)
				p, to := scriptedPacer(t, pace.Config{})
				from := headgate.Instant(time.Now().UnixNano())
				to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), From: from, Revision: 1})
				n := burst(p)
				for revision := range int64(5) {
					sleep(wait)
					to.Assign(pace.Assignment{Plan: even(t, 9-revision, time.Second, 1, 0), From: from, Revision: 2 + revision})
					n += burst(p)
				}
				if n != 10 {
					t.Errorf("%d within %v of a window that had 10 at most", n, 5*wait)
				}
			})
		})
	}
}

// TestLatePlanOfOtherWindows: a plan of shorter windows that comes after its time holds from
// the next of its edges, not from the end of the long window that it ends.
func TestLatePlanOfOtherWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Hour)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Hour, 1, 0), Revision: 1})
		burst(p)
		sleep(time.Minute + 100*time.Millisecond)
		waits := ask(p, 1, pace.Forever)
		from := headgate.Instant(time.Now().Add(-time.Second).Truncate(time.Second).UnixNano())
		to.Assign(pace.Assignment{Plan: even(t, 5, time.Second, 1, 0), From: from, Revision: 2})
		soon := ask(p, 1, 5*time.Second)
		sleep(2 * time.Second)
		synctest.Wait()
		if !soon.told || soon.err != nil {
			t.Errorf("who would wait for 5 s: %v, %v", soon.told, soon.err)
		}
		if !waits.told {
			t.Error("2 s after a plan of 5 a second nothing was given")
		}
	})
}
