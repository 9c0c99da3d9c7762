package pace_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/schedule"
)

// scripted is a source that tells what a test says.
type scripted struct {
	to     chan pace.Receiver
	fails  chan error
	brakes atomic.Int64
}

func script() *scripted {
	return &scripted{to: make(chan pace.Receiver, 1), fails: make(chan error, 1)}
}

func (s *scripted) Follow(ctx context.Context, to pace.Receiver) error {
	s.to <- to
	select {
	case err := <-s.fails:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Brake counts what is told to all instances.
func (s *scripted) Brake(pace.Brake) { s.brakes.Add(1) }

// scriptedPacer makes a pacer that knows no plan yet, and what its source tells to.
func scriptedPacer(t *testing.T, c pace.Config) (*pace.Pacer, pace.Receiver) {
	t.Helper()
	s := script()
	c.Source = s
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := pace.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, <-s.to
}

func even(t *testing.T, limit int64, per time.Duration, instances, index int) schedule.Plan {
	t.Helper()
	plan, err := schedule.Even(limit, per, instances, index)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// setClock is a wall clock that can be set.
type setClock struct{ by atomic.Int64 }

func (c *setClock) now() headgate.Instant {
	return headgate.Instant(time.Now().UnixNano() + c.by.Load())
}

func (c *setClock) set(by time.Duration) { c.by.Add(int64(by)) }

// toEdge sleeps until the next multiple of per by the bubble's clock.
func toEdge(per time.Duration) {
	sleep(time.Until(time.Now().Truncate(per).Add(per)))
}

// burst takes one after the other until there is none, and says how many there were.
func burst(p *pace.Pacer) int {
	n := 0
	for p.TryAcquire() {
		n++
	}
	return n
}

// outcome is what somebody who waits was told, and when.
type outcome struct {
	told bool
	err  error
	at   time.Time
}

func ask(p *pace.Pacer, n int64, maxWait time.Duration) *outcome {
	o := new(outcome)
	p.AcquireFunc(n, maxWait, func(_ headgate.Instant, err error) {
		o.told, o.err, o.at = true, err, time.Now()
	})
	return o
}

func opensOf(t *testing.T, err error) time.Time {
	t.Helper()
	var late *pace.TimeoutError
	if !errors.As(err, &late) {
		t.Fatalf("%v is no TimeoutError", err)
	}
	return late.Opens
}

// TestClockSetBackBeforeThePlan: the wall clock is set back to before the time from which the
// plan holds. The plan goes on to hold: nobody waits for longer than two windows.
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
				if !o.told || o.err != nil {
					t.Errorf("served %v, %v, 2 s after the clock was set back by %v", o.told, o.err, back)
				}
				sleep(2 * back)
				synctest.Wait()
				if o.told {
					t.Logf("it was served after %v", o.at.Sub(began))
				}
			})
		})
	}
}

// TestClockThereAndBackKeepsThePlan: a wall clock that was ahead for a moment makes a plan
// begin; when it is right again, that plan or the one before it holds.
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

// TestClockSetBackKeepsTheCount: what was given is counted, whatever becomes of the clock.
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

// TestEdgeWakesSmoothed: with permits spread, whoever waits is looked at when a window ends,
// since the next may be of a plan that opens sooner than the line of this one.
func TestEdgeWakesSmoothed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Minute)
		p, to := scriptedPacer(t, pace.Config{Smoothing: pace.EvenSpread})
		to.Assign(pace.Assignment{Plan: even(t, 6, time.Minute, 1, 0), Revision: 1})
		sleep(time.Second)
		if burst(p) != 1 {
			t.Fatal("not one")
		}
		// The line of this window opens its next after 10 s; the plan after it much sooner.
		to.Assign(pace.Assignment{
			Plan: even(t, 1000, time.Second, 1, 0), Revision: 2,
			From: headgate.Instant(time.Now().Truncate(time.Second).Add(time.Second).UnixNano()),
		})
		began := time.Now()
		var last *outcome
		for range 5 {
			last = ask(p, 1, pace.Forever)
		}
		sleep(10 * time.Minute)
		synctest.Wait()
		if took := last.at.Sub(began); !last.told || took > 1100*time.Millisecond {
			t.Errorf("the fifth was served after %v, want 1.004s", took)
		}
	})
}

// TestNotHopelessWhenTheNextPlanOpensSooner is the same for those who would not wait so long
// as the line of this window: they must not be refused.
func TestNotHopelessWhenTheNextPlanOpensSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Minute)
		p, to := scriptedPacer(t, pace.Config{Smoothing: pace.EvenSpread})
		to.Assign(pace.Assignment{Plan: even(t, 6, time.Minute, 1, 0), Revision: 1})
		sleep(time.Second)
		if burst(p) != 1 {
			t.Fatal("not one")
		}
		before := ask(p, 1, 12*time.Second)
		to.Assign(pace.Assignment{
			Plan: even(t, 1000, time.Second, 1, 0), Revision: 2,
			From: headgate.Instant(time.Now().Truncate(time.Second).Add(time.Second).UnixNano()),
		})
		after := ask(p, 1, 2*time.Second)
		sleep(5 * time.Second)
		synctest.Wait()
		for _, o := range []*outcome{before, after} {
			if !o.told || o.err != nil {
				t.Errorf("%v, %v within 5 s", o.told, o.err)
			}
		}
	})
}

// TestSkippedPermitsDoNotDelayTheNextWindow: permits that nobody wanted lapse, which pushes
// the line of the rest past the window's end; the next window has a line of its own.
func TestSkippedPermitsDoNotDelayTheNextWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Minute)
		p, to := scriptedPacer(t, pace.Config{Smoothing: pace.EvenSpread})
		to.Assign(pace.Assignment{Plan: even(t, 60, time.Minute, 1, 0), Revision: 1})
		to.Assign(pace.Assignment{
			Plan: even(t, 60_000, time.Minute, 1, 0), Revision: 2,
			From: headgate.Instant(time.Now().Truncate(time.Minute).Add(time.Minute).UnixNano()),
		})
		sleep(59 * time.Second)
		began := time.Now()
		o := ask(p, 20, pace.Forever)
		p.Stats()
		soon := ask(p, 1, 5*time.Second)
		sleep(10 * time.Minute)
		synctest.Wait()
		if took := o.at.Sub(began); !o.told || o.err != nil || took > 1100*time.Millisecond {
			t.Errorf("20 units after %v, %v, want 1.02s", took, o.err)
		}
		if !soon.told || soon.err != nil {
			t.Errorf("who would wait for 5 s: %v, %v; it could be served after 1.02 s", soon.told, soon.err)
		}
	})
}

// TestLateTimerRefusesNobodyWhoseUnitsOpened: a callback that took its time made the timer
// late. Those whose units opened before their deadlines are served, not only the first, and
// those whose did not are refused.
func TestLateTimerRefusesNobodyWhoseUnitsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 3, time.Second, 1, 0), Revision: 1})
		burst(p)
		// The source is lost for a moment, so that nobody is refused at once.
		to.ValidUntil(time.Now())
		p.AcquireFunc(1, 990*time.Millisecond, func(headgate.Instant, error) { sleep(300 * time.Millisecond) })
		var waiters [4]*outcome
		for i := range waiters {
			waiters[i] = ask(p, 1, 1200*time.Millisecond)
		}
		to.ValidUntil(time.Time{})
		sleep(5 * time.Second)
		synctest.Wait()
		for i, o := range waiters {
			if served := o.told && o.err == nil; served != (i < 3) {
				t.Errorf("waiter %d of 4: %v, %v: the units of 3 opened 200 ms before their deadline", i, o.told, o.err)
			}
		}
	})
}

// TestDeadlineBetweenTwoLooks: waiters are looked at every 500 µs at most. Who waits until a
// time between two looks, and whose unit has opened before, is served, behind others too.
func TestDeadlineBetweenTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 3, time.Second, 1, 0), Revision: 1})
		burst(p)
		a := ask(p, 1, pace.Forever)
		b := ask(p, 1, time.Second+200*time.Microsecond)
		c := ask(p, 1, time.Second+200*time.Microsecond)
		// Something that makes it look 100 µs before the edge: a waiter whose source is lost
		// cannot be refused at once, so it is looked at when it is late.
		to.ValidUntil(time.Now().Add(-time.Second))
		d := ask(p, 1, time.Second-100*time.Microsecond)
		to.ValidUntil(time.Time{})
		sleep(5 * time.Second)
		synctest.Wait()
		if d.err == nil {
			t.Fatal("the helper was served")
		}
		for i, o := range []*outcome{a, b, c} {
			if !o.told || o.err != nil {
				t.Errorf("waiter %d: %v, %v: its unit opened 200 µs before its deadline", i, o.told, o.err)
			}
		}
	})
}

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

// TestWallTimesBeforeTheFirstPlan: a time without a monotonic reading, from a store or a
// header, means the same before the first plan as after it.
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

// TestLoweredBelowAWaiter: who waits for more than any window of a new plan has is told so,
// at the latest when that plan begins, and does not stand before all others for ever.
func TestLoweredBelowAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 100, time.Second, 1, 0), Revision: 1})
		burst(p)
		big, small := ask(p, 100, pace.Forever), ask(p, 1, pace.Forever)
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 2})
		sleep(time.Minute)
		synctest.Wait()
		if !big.told || !errors.Is(big.err, pace.ErrTooLarge) {
			t.Errorf("100 units of 10 a second: %v, %v", big.told, big.err)
		}
		if !small.told || small.err != nil {
			t.Errorf("one unit behind it: %v, %v after a minute", small.told, small.err)
		}
	})
}

// TestOpensWhileStopped: the time that is told is that of the first window which begins after
// the brake's end, and who cannot wait so long is refused at once.
func TestOpensWhileStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p := static(t, 10, pace.Config{})
		edge := time.Now()
		sleep(200 * time.Millisecond)
		p.Brake(pace.Brake{Until: edge.Add(3500 * time.Millisecond)})
		if got := opensOf(t, p.Acquire(t.Context(), 0)); !got.Equal(edge.Add(4 * time.Second)) {
			t.Errorf("it says %v after the edge, want 4s", got.Sub(edge))
		}
		hopeless := ask(p, 1, 3500*time.Millisecond) // until 3.7 s
		if !hopeless.told {
			t.Error("who cannot be served in time waits")
		}
		served := ask(p, 1, pace.Forever)
		sleep(time.Minute)
		synctest.Wait()
		if got := served.at.Sub(edge); got != 4*time.Second {
			t.Errorf("served after %v", got)
		}
	})
}

// TestBrakeEndsWithAWindow: a brake ends with the first window that begins after its end,
// also when nobody asked while that of its end began.
func TestBrakeEndsWithAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p := static(t, 10, pace.Config{})
		edge := time.Now()
		p.Brake(pace.Brake{Until: edge.Add(3500 * time.Millisecond)})
		sleep(3600 * time.Millisecond)
		if n := burst(p); n != 0 {
			t.Errorf("%d in the window in which the brake ended", n)
		}
		sleep(500 * time.Millisecond)
		if n := burst(p); n != 10 {
			t.Errorf("%d in the window after it", n)
		}
	})
}

// TestBrakesAddUp: of two brakes the weaker one still holds when the stronger one has ended,
// in whichever order they came.
func TestBrakesAddUp(t *testing.T) {
	for _, softFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("soft first ", softFirst), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				toEdge(time.Second)
				p := static(t, 10, pace.Config{})
				soft := pace.Brake{Until: time.Now().Add(time.Minute), Percent: 50, Reason: "soft-limit"}
				hard := pace.Brake{Until: time.Now().Add(time.Second), Reason: "429 Retry-After"}
				if softFirst {
					p.Brake(soft)
					p.Brake(hard)
				} else {
					p.Brake(hard)
					p.Brake(soft)
				}
				sleep(5500 * time.Millisecond)
				if n := burst(p); n != 5 {
					t.Errorf("%d of 10 in a window, while a brake of 50 percent holds", n)
				}
			})
		})
	}
}

// TestBrakeOfSmallParts: half of 10 a second over 96 instances is 5 a second, not 0.
func TestBrakeOfSmallParts(t *testing.T) {
	for _, c := range []struct{ limit, instances, percent int }{{10, 96, 50}, {1, 1, 50}, {95, 96, 90}, {97, 96, 10}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			const windows = 200
			sum := int64(0)
			for w := int64(1_000_000); w < 1_000_000+windows; w++ {
				in := int64(0)
				for i := range c.instances {
					in += even(t, int64(c.limit), time.Second, c.instances, i).Braked(w, c.percent)
				}
				if in > int64(c.limit) {
					t.Fatalf("%d in window %d", in, w)
				}
				sum += in
			}
			want := float64(max(c.limit*c.percent/100, 1)) * windows
			if float64(sum) > want+1 || float64(sum) < want*0.9 {
				t.Errorf("%d units in %d windows, want %.0f", sum, windows, want)
			}
		})
	}
}

// TestBrakesAreNotAFlood: a provider that refuses every call has every caller brake, each a
// little longer. That is not a line of the log and a message to all instances each.
func TestBrakesAreNotAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines atomic.Int64
		s := script()
		p, err := pace.New(pace.Config{Source: s, Logger: slog.New(lineCounter{&lines})})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		(<-s.to).Assign(pace.Assignment{Plan: even(t, 10_000, time.Second, 1, 0), Revision: 1})
		lines.Store(0)
		for range 1000 {
			p.Brake(pace.Brake{Until: time.Now().Add(time.Second), Reason: "429 Retry-After"})
			sleep(time.Millisecond)
		}
		if lines.Load() > 20 || s.brakes.Load() > 20 {
			t.Errorf("%d lines of the log and %d messages to all instances in a second", lines.Load(), s.brakes.Load())
		}
	})
}

type lineCounter struct{ lines *atomic.Int64 }

func (lineCounter) Enabled(context.Context, slog.Level) bool    { return true }
func (l lineCounter) Handle(context.Context, slog.Record) error { l.lines.Add(1); return nil }
func (l lineCounter) WithAttrs([]slog.Attr) slog.Handler        { return l }
func (l lineCounter) WithGroup(string) slog.Handler             { return l }

// TestLookingDoesNotOpen: with permits spread, a look at the figures lets nothing go that had
// lapsed, nor does a source that says the same again, nor one who waited and gave up.
func TestLookingDoesNotOpen(t *testing.T) {
	for name, look := range map[string]func(*pace.Pacer, pace.Receiver){
		"nothing": func(*pace.Pacer, pace.Receiver) {},
		"stats":   func(p *pace.Pacer, _ pace.Receiver) { p.Stats() },
		"demand":  func(_ *pace.Pacer, to pace.Receiver) { to.Demand() },
		"valid":   func(_ *pace.Pacer, to pace.Receiver) { to.ValidUntil(time.Now().Add(time.Hour)) },
		"gave up": func(p *pace.Pacer, _ pace.Receiver) {
			p.AcquireFunc(10_000, pace.Forever, func(headgate.Instant, error) {}).Cancel()
		},
		"gave up late": func(p *pace.Pacer, _ pace.Receiver) {
			ticket := p.AcquireFunc(10_000, pace.Forever, func(headgate.Instant, error) {})
			sleep(50 * time.Millisecond)
			ticket.Cancel()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				toEdge(time.Second)
				p, to := scriptedPacer(t, pace.Config{Smoothing: pace.EvenSpread})
				to.Assign(pace.Assignment{Plan: even(t, 10_000, time.Second, 1, 0), Revision: 1})
				sleep(900 * time.Millisecond)
				look(p, to)
				if n := burst(p); n > 101 {
					t.Errorf("%d at once, want 101 at most: 10 ms and one", n)
				}
			})
		})
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

// TestOpensAfterTheClockWasSet: a window that was passed over because the clock was set does
// not make times of the past of what is to come.
func TestOpensAfterTheClockWasSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		var wall setClock
		p := static(t, 3, pace.Config{Wall: wall.now})
		sleep(1200 * time.Millisecond)
		burst(p)
		wall.set(500 * time.Millisecond)
		sleep(time.Second) // The window that ended was followed by one that is passed over.
		if burst(p) != 0 {
			t.Fatal("a window that is half over was opened")
		}
		now := time.Now()
		if got := opensOf(t, p.Acquire(t.Context(), 0)); !got.Equal(now.Add(800 * time.Millisecond)) { // 300 ms, 500 ms ahead
			t.Errorf("it says %v from now by the old clock, want 800ms", got.Sub(now))
		}
		if o := ask(p, 1, 200*time.Millisecond); !o.told {
			t.Error("who cannot be served in time waits")
		}
		o := ask(p, 1, 301*time.Millisecond)
		sleep(time.Second)
		synctest.Wait()
		if !o.told || o.err != nil || o.at.Sub(now) != 300*time.Millisecond {
			t.Errorf("%v, %v after %v", o.told, o.err, o.at.Sub(now))
		}
	})
}

// TestOpensAfterASlewAndAPlan: the wall clock was set right by a millisecond, and a plan came.
// The time that is told is still one to come.
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
		if o := ask(p, 1, 100*time.Millisecond); !o.told {
			t.Error("who cannot be served in time waits")
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

// TestClockThatRunsFast: whatever is done to the clock, no time as long as a window sees more
// than the parts of two windows.
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
			if took := time.Since(began); n > 20 && took < time.Second {
				t.Errorf("%d within %v", n, took)
			}
		}
	})
}

// TestFastWindowsAreLearnt: with pid, a window whose last permit was taken early and of which
// somebody wanted more, who waits, is learnt from, as one is of which somebody was refused.
func TestFastWindowsAreLearnt(t *testing.T) {
	last := func(waits bool) (sums []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			toEdge(time.Second)
			p := static(t, 100, pace.Config{Smoothing: pace.PID})
			for range 20 { // Half of the limit, evenly: permits come to open five times as fast.
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

// TestWallTimesAfterTheClockWasSet: a wall time is read by the wall clock as it is, not as it
// was when the window began, which may be long ago.
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

// TestWholePartSpread: with permits spread, who wants a whole part can have it before the
// window's end, also when somebody else was looked at just before: else it stands before all
// others for ever. (By real clocks, each timer is late enough for that.)
func TestWholePartSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{Smoothing: pace.EvenSpread})
		to.Assign(pace.Assignment{Plan: even(t, 10_000, time.Second, 1, 0), Revision: 1})
		to.ValidUntil(time.Now().Add(-time.Second)) // So that nobody is refused at once.
		whole := ask(p, 10_000, pace.Forever)
		behind := ask(p, 1, pace.Forever)
		for second := range 3 {
			ask(p, 1, time.Duration(second)*time.Second+999_800*time.Microsecond)
		}
		to.ValidUntil(time.Time{})
		sleep(2500 * time.Millisecond)
		synctest.Wait()
		if !whole.told || !behind.told {
			t.Errorf("after two and a half windows the whole part was given: %v; who is behind it served: %v", whole.told, behind.told)
		}
	})
}
