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
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// TestFirstPlanAhead: a first plan with a start in the future has complete windows from that
// start, whenever the first call comes.
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

// TestFirstWindowOfLongWindows: the rest of a long first window has its part of the units. The
// product of units and nanoseconds may exceed 63 bits.
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

// TestBurstAfterALoss: with EvenSpread, the permits of a time without a source are not all
// available when the source is back.
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

// TestSamePlanAgainCostsNothing: the source reports the same plan with a newer revision and a
// past start. The rest of the window is not lost.
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

// TestLatePlanCostsNothing: a plan comes after its start. The window keeps the units that both
// this plan and the one before give.
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

// TestEarlierPlanReplacesTheFirst: a plan with an earlier start replaces a first plan that has
// not started.
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

// TestDemandOfTheImpossible: a request above the units of any window is not demand.
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

// TestUnitsBeyondNumbers: without a limit, sums of units do not overflow.
func TestUnitsBeyondNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 0, time.Second, 1, 0), Revision: 1})
		a, b := ask(p, math.MaxInt64-5, pace.Forever), ask(p, 1<<62, pace.Forever)
		if c := ask(p, 1, time.Minute); !c.notified {
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

// TestZeroPlan: the zero Plan admits nothing, and does not panic.
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

// TestShortWindowsAreUsed: with EvenSpread and short windows, waiters use all units.
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

// TestLatePlanNeverOpensTwice: a plan that comes shortly after its start does not begin the
// window again.
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

// TestLatePlanOfOtherWindows: a late plan with shorter windows starts at the next of its edges.
// It does not wait for the end of the long window.
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
		if !soon.notified || soon.err != nil {
			t.Errorf("who would wait for 5 s: %v, %v", soon.notified, soon.err)
		}
		if !waits.notified {
			t.Error("2 s after a plan of 5 a second nothing was given")
		}
	})
}
