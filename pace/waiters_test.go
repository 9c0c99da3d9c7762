package pace_test

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// TestEdgeWakesSmoothed: with smoothing, waiters are checked when a window ends, because the
// next plan may open permits sooner.
func TestEdgeWakesSmoothed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Minute)
		p, to := scriptedPacer(t, pace.Config{Smoothing: pace.EvenSpread})
		to.Assign(pace.Assignment{Plan: even(t, 6, time.Minute, 1, 0), Revision: 1})
		sleep(time.Second)
		if burst(p) != 1 {
			t.Fatal("not one")
		}
		// The next permit of this window opens after 10 s, and that of the next plan much sooner.
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
		if elapsed := last.at.Sub(began); !last.notified || elapsed > 1100*time.Millisecond {
			t.Errorf("the fifth was served after %v, want 1.004s", elapsed)
		}
	})
}

// TestNotHopelessWhenTheNextPlanOpensSooner is the same for callers with a deadline before the
// next permit of this window: they must not be refused.
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
			if !o.notified || o.err != nil {
				t.Errorf("%v, %v within 5 s", o.notified, o.err)
			}
		}
	})
}

// TestSkippedPermitsDoNotDelayTheNextWindow: unused permits expire, which moves the remaining
// ones beyond the end of the window. The next window is not affected.
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
		if elapsed := o.at.Sub(began); !o.notified || o.err != nil || elapsed > 1100*time.Millisecond {
			t.Errorf("20 units after %v, %v, want 1.02s", elapsed, o.err)
		}
		if !soon.notified || soon.err != nil {
			t.Errorf("who would wait for 5 s: %v, %v; it could be served after 1.02 s", soon.notified, soon.err)
		}
	})
}

// TestLateTimerRefusesNobodyWhoseUnitsOpened: a slow callback delayed the timer. All waiters
// with units that opened before their deadlines are served, and the others are refused.
func TestLateTimerRefusesNobodyWhoseUnitsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 3, time.Second, 1, 0), Revision: 1})
		burst(p)
		// The source is lost for a moment, so that no caller is refused at once.
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
			if served := o.notified && o.err == nil; served != (i < 3) {
				t.Errorf("waiter %d of 4: %v, %v: the units of 3 opened 200 ms before their deadline", i, o.notified, o.err)
			}
		}
	})
}

// TestDeadlineBetweenTwoLooks: waiters are checked every 500 µs at most. A waiter with a
// deadline between two checks is served if its unit opened before, also behind other waiters.
func TestDeadlineBetweenTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 3, time.Second, 1, 0), Revision: 1})
		burst(p)
		a := ask(p, 1, pace.Forever)
		b := ask(p, 1, time.Second+200*time.Microsecond)
		c := ask(p, 1, time.Second+200*time.Microsecond)
		// This causes a check 100 µs before the edge: while the source is lost, a waiter is not refused
		// at once but checked at its deadline.
		to.ValidUntil(time.Now().Add(-time.Second))
		d := ask(p, 1, time.Second-100*time.Microsecond)
		to.ValidUntil(time.Time{})
		sleep(5 * time.Second)
		synctest.Wait()
		if d.err == nil {
			t.Fatal("the helper was served")
		}
		for i, o := range []*outcome{a, b, c} {
			if !o.notified || o.err != nil {
				t.Errorf("waiter %d: %v, %v: its unit opened 200 µs before its deadline", i, o.notified, o.err)
			}
		}
	})
}

// TestLoweredBelowAWaiter: a waiter needs more units than any window of a new plan has. It is
// refused when that plan starts at the latest, and does not block the other waiters.
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
		if !big.notified || !errors.Is(big.err, pace.ErrTooLarge) {
			t.Errorf("100 units of 10 a second: %v, %v", big.notified, big.err)
		}
		if !small.notified || small.err != nil {
			t.Errorf("one unit behind it: %v, %v after a minute", small.notified, small.err)
		}
	})
}

// TestOpensWhileStopped: the predicted time is that of the first window after the brake's end. A
// caller with an earlier deadline is refused at once.
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
		if !hopeless.notified {
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

// TestLookingDoesNotOpen: with EvenSpread, expired permits do not become available again by
// reading the statistics, by a repeated plan, or by a waiter that leaves.
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

// TestWholePartSpread: with EvenSpread, a caller can take a whole part before the end of the
// window, also when another waiter was checked just before. Otherwise this caller would block
// all others. (With real clocks, each timer is late enough for that.)
func TestWholePartSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{Smoothing: pace.EvenSpread})
		to.Assign(pace.Assignment{Plan: even(t, 10_000, time.Second, 1, 0), Revision: 1})
		to.ValidUntil(time.Now().Add(-time.Second)) // no caller is then refused at once
		whole := ask(p, 10_000, pace.Forever)
		behind := ask(p, 1, pace.Forever)
		for second := range 3 {
			ask(p, 1, time.Duration(second)*time.Second+999_800*time.Microsecond)
		}
		to.ValidUntil(time.Time{})
		sleep(2500 * time.Millisecond)
		synctest.Wait()
		if !whole.notified || !behind.notified {
			t.Errorf("after two and a half windows, the waiter of the whole part is served: %v; the next one is served: %v", whole.notified, behind.notified)
		}
	})
}

// TestCallbackEndsItsGoroutine: a callback that ends its goroutine, as t.FailNow does, does not
// stop the other callbacks.
func TestCallbackEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p := static(t, 1, pace.Config{})
		p.TryAcquire()
		p.AcquireFunc(1, pace.Forever, func(headgate.Instant, error) { runtime.Goexit() })
		after := ask(p, 1, pace.Forever)
		sleep(5 * time.Second)
		synctest.Wait()
		if !after.notified || after.err != nil {
			t.Errorf("the next waiter: served %v, %v", after.notified, after.err)
		}
	})
}
