package pace_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// TestContext: a ctx that is done is an error and takes nothing. Its deadline bounds the wait.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p := static(t, 3, pace.Config{})
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Acquire(done, pace.Forever); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := burst(p); n != 3 {
			t.Errorf("%d were left", n)
		}
		soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := p.Acquire(soon, pace.Forever); !errors.Is(err, pace.ErrTimeout) || time.Since(began) != 0 {
			t.Errorf("%v after %v, want ErrTimeout at once", err, time.Since(began))
		}
		later, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		if err := p.Acquire(later, pace.Forever); !errors.Is(err, context.Canceled) || time.Since(began) != 300*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if s := p.Stats(); s.GivenUp != 1 || s.Waiters != 0 || s.TimedOut != 1 || s.Acquired != 3 {
			t.Errorf("%+v", s)
		}
		sleep(time.Second)
		if n := burst(p); n != 3 {
			t.Errorf("%d in the next second: who gave up has taken some", n)
		}
	})
}

// TestMaxWaiters: a waiter beyond the bound is refused, and may wait after another has left.
func TestMaxWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := scriptedPacer(t, pace.Config{MaxWaiters: 2})
		f := func(headgate.Instant, error) {}
		first := p.AcquireFunc(1, pace.Forever, f)
		p.AcquireFunc(1, pace.Forever, f)
		if err := p.Acquire(t.Context(), pace.Forever); !errors.Is(err, pace.ErrTooManyWaiters) {
			t.Error(err)
		}
		if !first.Cancel() || first.Cancel() || (pace.Ticket{}).Cancel() {
			t.Error("a place is given up once")
		}
		if o := ask(p, 1, pace.Forever); o.notified {
			t.Error(o.err)
		}
	})
}

// TestSourceFails: a permanent fault of the source ends all waits, with its reason.
func TestSourceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script()
		p, err := pace.New(pace.Config{Source: s, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		waits := ask(p, 1, pace.Forever)
		broken := errors.New("no such file")
		s.fails <- broken
		synctest.Wait()
		if !waits.notified || !errors.Is(waits.err, pace.ErrClosed) || !errors.Is(waits.err, broken) {
			t.Errorf("%v, %v", waits.notified, waits.err)
		}
		for _, err := range []error{p.Ready(t.Context()), p.Acquire(t.Context(), time.Second)} {
			if !errors.Is(err, broken) {
				t.Error(err)
			}
		}
		if p.TryAcquire() {
			t.Error("it is open")
		}
	})
}

// TestCloseTellsAll: Close ends all waits, and later calls fail. Close can be called again.
func TestCloseTellsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := static(t, 0, pace.Config{})
		var all [2000]*outcome
		for i := range all {
			all[i] = ask(p, 1, pace.Forever)
		}
		parked := make(chan error)
		go func() { parked <- p.Acquire(t.Context(), pace.Forever) }()
		synctest.Wait()
		go p.Close()
		if err := <-parked; !errors.Is(err, pace.ErrClosed) {
			t.Error(err)
		}
		p.Close()
		for _, o := range all {
			if !o.notified || !errors.Is(o.err, pace.ErrClosed) {
				t.Fatalf("%v, %v", o.notified, o.err)
			}
		}
		if o := ask(p, 1, pace.Forever); !errors.Is(o.err, pace.ErrClosed) {
			t.Error(o.err)
		}
	})
}

// TestCallbackPanics: a callback that panics at once leaves the pacer unchanged.
func TestCallbackPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p := static(t, 3, pace.Config{})
		for range 4 {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic is lost")
					}
				}()
				p.AcquireFunc(1, 0, func(headgate.Instant, error) { panic("a fault of the caller") })
			}()
		}
		if s := p.Stats(); s.Acquired != 3 || s.TimedOut != 1 {
			t.Errorf("%+v", s)
		}
		sleep(time.Second)
		if n := burst(p); n != 3 {
			t.Errorf("%d in the next second", n)
		}
	})
}

// TestLongAndShortWindows uses windows of a millisecond, an hour and a year.
func TestLongAndShortWindows(t *testing.T) {
	for _, per := range []time.Duration{time.Millisecond, time.Hour, 365 * 24 * time.Hour} {
		t.Run(per.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var wall setClock
				p, to := scriptedPacer(t, pace.Config{Wall: wall.now})
				plan := even(t, 5, per, 1, 0)
				edge := plan.Start(plan.Window(wall.now()) + 1).Time()
				to.Assign(pace.Assignment{Plan: plan, From: headgate.Instant(edge.UnixNano()), Revision: 1})
				first := ask(p, 1, pace.Forever)
				sleep(time.Until(edge))
				synctest.Wait()
				if !first.notified || !first.at.Equal(edge) {
					t.Errorf("the first at %v, want %v", first.at, edge)
				}
				if n := burst(p); n != 4 {
					t.Errorf("%d more", n)
				}
				var all [10]*outcome
				for i := range all {
					all[i] = ask(p, 1, pace.Forever)
				}
				sleep(2 * per)
				synctest.Wait()
				for i, o := range all {
					if want := edge.Add(per * time.Duration(1+i/5)); !o.notified || !o.at.Equal(want) {
						t.Errorf("%d at %v, want %v", i, o.at, want)
					}
				}
			})
		})
	}
}

// TestSettled: until a plan is settled, an instance takes at most the smaller part of this plan
// and the one before.
func TestSettled(t *testing.T) {
	for _, c := range []struct{ before, after int64 }{{10, 20}, {20, 10}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				toEdge(time.Second)
				p, to := scriptedPacer(t, pace.Config{})
				to.Assign(pace.Assignment{Plan: even(t, c.before, time.Second, 1, 0), Revision: 1})
				to.Assign(pace.Assignment{
					Plan: even(t, c.after, time.Second, 1, 0), Revision: 2, Settled: time.Now().Add(2500 * time.Millisecond),
				})
				for window, want := range []int64{c.before, 10, 10, c.after} {
					if n := burst(p); int64(n) != want {
						t.Errorf("%d in window %d, want %d", n, window, want)
					}
					sleep(time.Second)
				}
			})
		})
	}
}

// TestOtherWindows: a plan with other windows starts at one of its edges.
func TestOtherWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Minute)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 1})
		to.Assign(pace.Assignment{Plan: even(t, 7, time.Minute, 1, 0), Revision: 2})
		var used []int
		for range 65 {
			used = append(used, burst(p))
			sleep(time.Second)
		}
		for second, n := range used {
			want := 10
			if second == 60 {
				want = 7
			} else if second > 60 {
				want = 0
			}
			if n != want {
				t.Errorf("%d in second %d, want %d", n, second, want)
			}
		}
		to.Assign(pace.Assignment{Plan: even(t, 3, time.Second, 1, 0), Revision: 3})
		sleep(time.Second)
		if n := burst(p); n != 3 {
			t.Errorf("%d when windows are seconds again", n)
		}
	})
}

// TestBrakes: a brake has its percentage at once. A brake of the source ends when the source
// says so.
func TestBrakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 1})
		window := func(what string, want int) {
			t.Helper()
			if n := burst(p); n != want {
				t.Errorf("%s: %d, want %d", what, n, want)
			}
			sleep(time.Second)
		}
		p.TryAcquire()
		p.Brake(pace.Brake{Until: time.Now().Add(1500 * time.Millisecond), Percent: 50})
		window("half of the window, of which one was gone", 4)
		window("half", 5)
		window("the brake has ended", 10)
		to.Brake(pace.Brake{Until: time.Now().Add(time.Minute)})
		window("stopped", 0)
		p.Brake(pace.Brake{Until: time.Now().Add(time.Minute), Percent: 50})
		window("stopped, and half", 0)
		to.Brake(pace.Brake{})
		sleep(time.Second)
		window("half is left", 5)
		p.Brake(pace.Brake{Until: time.Now().Add(-time.Second)})
		p.Brake(pace.Brake{Until: time.Now().Add(time.Hour), Percent: 100})
		window("brakes of nothing change nothing", 5)
		if s := p.Stats(); s.BrakedTo != 50 || s.Brakes != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// TestLost: an expired plan is not used until it is valid again. Meanwhile no caller is refused
// at once, and deadlines apply.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 1})
		to.ValidUntil(time.Now().Add(500 * time.Millisecond))
		p.TryAcquire()
		sleep(500 * time.Millisecond)
		if p.TryAcquire() || !p.Stats().Lost {
			t.Error("used after its end")
		}
		began := time.Now()
		short, long := ask(p, 1, 2*time.Second), ask(p, 1, pace.Forever)
		sleep(3300 * time.Millisecond)
		synctest.Wait()
		var late *pace.TimeoutError
		if !short.notified || short.at.Sub(began) != 2*time.Second || !errors.As(short.err, &late) || late.Cause == "" {
			t.Errorf("%v, %v after %v", short.notified, short.err, short.at.Sub(began))
		}
		to.ValidUntil(time.Now().Add(time.Second))
		synctest.Wait()
		sleep(time.Millisecond)
		if !long.notified || long.err != nil || long.at.Sub(began) != 3300*time.Millisecond {
			t.Errorf("%v, %v after %v", long.notified, long.err, long.at.Sub(began))
		}
	})
}

// TestSmoothed: with every smoothing, no window has more than its part, by the times of the
// callbacks. With enough demand, the whole part is used. With EvenSpread, a slot has its permits
// and the credit.
func TestSmoothed(t *testing.T) {
	const limit, windows = 1000, 8
	slot := 10 * time.Millisecond
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		for index := range 3 {
			t.Run(fmt.Sprint(smoothing, index), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					toEdge(time.Second)
					p, to := scriptedPacer(t, pace.Config{Smoothing: smoothing})
					plan := even(t, limit, time.Second, 3, index)
					to.Assign(pace.Assignment{Plan: plan, Revision: 1})
					var mu sync.Mutex
					byWindow, bySlot := map[int64]int64{}, map[int64]int64{}
					heard := func(at headgate.Instant, err error) {
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							byWindow[plan.Window(at)]++
							bySlot[int64(at)/int64(slot)]++
						}
					}
					first := plan.Window(headgate.Instant(time.Now().UnixNano()))
					for range windows * limit / 2 {
						p.AcquireFunc(1, pace.Forever, heard)
					}
					sleep(windows * time.Second)
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					for w := first; w < first+windows; w++ {
						if n, part := byWindow[w], plan.Part(w); n > part || n < part*99/100 {
							t.Errorf("%d of %d in window %d", n, part, w-first)
						}
					}
					// 3.3 in a slot, and one more at each edge
					for s, n := range bySlot {
						if smoothing == pace.EvenSpread && n > limit/3/100+2 {
							t.Errorf("%d in slot %d", n, s)
						}
					}
				})
			})
		}
	}
}

// TestSpreadCredit: with EvenSpread, a caller after an idle time finds the permits of ten
// milliseconds.
func TestSpreadCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p := static(t, 1000, pace.Config{Smoothing: pace.EvenSpread})
		for range 20 {
			sleep(time.Duration(130+time.Now().Nanosecond()%7) * time.Millisecond)
			if n := burst(p); n < 9 || n > 11 {
				t.Errorf("%d at once after an idle time, want 10", n)
			}
		}
	})
}

// TestPIDLearns: with little demand permits open early, and with high demand they are spread.
func TestPIDLearns(t *testing.T) {
	const limit = 1000
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p := static(t, limit, pace.Config{Smoothing: pace.PID})
		var mu sync.Mutex
		var waited time.Duration
		demand := func(n int) (longest time.Duration, last time.Duration) {
			edge := time.Now()
			mu.Lock()
			waited = 0
			mu.Unlock()
			for range n {
				began := time.Now()
				p.AcquireFunc(1, time.Second-time.Since(edge), func(_ headgate.Instant, err error) {
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						waited, last = max(waited, time.Since(began)), time.Since(edge)
					}
				})
			}
			sleep(time.Until(edge.Add(time.Second)))
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return waited, last
		}
		atFirst, _ := demand(limit / 4)
		for range 20 {
			demand(limit / 4)
		}
		learnt, _ := demand(limit / 4)
		if learnt > atFirst/2 {
			t.Errorf("a quarter of the limit, all at once, waits for up to %v, and %v at first", learnt, atFirst)
		}
		for range 20 {
			demand(3 * limit)
		}
		if _, last := demand(3 * limit); last < 950*time.Millisecond {
			t.Errorf("with three times the limit the last permit is had after %v", last)
		}
	})
}
