package pace_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// TestClockSetBeforeAPlanOfOtherWindows: a plan of other windows begins within a window of the plan
// before. A wall clock that is set by a little meanwhile puts that off by as much, and not until
// the long window's end, while all other instances go by the new plan.
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
				for range 2000 { // It is used all the time, so the edge is seen when it is there.
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

// TestCallbackEndsItsGoroutine: a callback that ends its goroutine, as one that fails a test does,
// does not end the service of all others.
func TestCallbackEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		p := static(t, 1, pace.Config{})
		p.TryAcquire()
		p.AcquireFunc(1, pace.Forever, func(headgate.Instant, error) { runtime.Goexit() })
		after := ask(p, 1, pace.Forever)
		sleep(5 * time.Second)
		synctest.Wait()
		if !after.told || after.err != nil {
			t.Errorf("who is behind it: %v, %v", after.told, after.err)
		}
	})
}

// TestClockSetAtRandom: however far the clock is set, no time as long as a window less a thousandth
// sees more than two parts; and none as long as two windows sees nothing, when it is not set
// again meanwhile.
func TestClockSetAtRandom(t *testing.T) {
	const limit = 5
	for seed := range uint64(30) {
		often := []int{3500, 700}[seed%2] // In ms, about.
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
			if n := most(at, 999*time.Millisecond); n > 2*limit+1 { // One is the first of the list.
				t.Errorf("seed %d: %d within 999 ms", seed, n)
			}
		})
	}
}
