package pacing

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// setLimit is the limit in the tests that set an instance's clock.
const setLimit = 1_000

// shorter is the minimum length of a window while the clock is set.
const shorter = time.Second - time.Second/1000

// boundWhileSet returns the most units that an instance gives within an interval while its
// clock is set. A window never begins before the window before it has ended. After a small
// step forward, windows are shorter by a thousandth until they have caught up. A small step is
// at most 100 ms and at most a tenth of a window. After any other step, one window is longer.
//
// So an interval that is a thousandth shorter than a window touches at most two windows, and
// has at most 2R. An interval as long as a window may have 3R. With even spreading, the second
// interval has R and a thousandth, the units of 10 ms without demand, and a few units for the
// edges.
func boundWhileSet(smoothing pace.Smoothing) (units int64, within time.Duration) {
	if smoothing == pace.EvenSpread {
		return setLimit + setLimit/1000 + setLimit/100 + 5, time.Second
	}
	return 2 * setLimit, shorter
}

// TestClockIsSet sets the clock of an instance just before the end of a window, when demand
// begins.
func TestClockIsSet(t *testing.T) {
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread} {
		for _, by := range []time.Duration{off / 2, off, off + 1, 10 * off, -off, -10 * off} {
			t.Run(fmt.Sprint(smoothing, " ", by), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { setClock(t, smoothing, by) })
			})
		}
	}
}

func setClock(t *testing.T, smoothing pace.Smoothing, by time.Duration) {
	t.Helper()
	var ahead atomic.Int64
	f := start(t, settings{limit: setLimit, instances: 1, smoothing: smoothing, keep: true, wall: func() headgate.Instant {
		return headgate.Instant(time.Now().UnixNano() + ahead.Load())
	}})
	sleepUntil(time.Now().Add(2*time.Second - 500*time.Microsecond))
	f.saturate()
	sleepUntil(time.Now().Add(250 * time.Microsecond))
	ahead.Store(int64(by))
	run(t, 4, f)
	bound, within := boundWhileSet(smoothing)
	n, from := most(f.times(), within)
	second, _ := most(f.times(), time.Second)
	t.Logf("maximum: %.4f of the limit within %v, %.4f within a second", float64(n)/setLimit, within, float64(second)/setLimit)
	if n > bound {
		t.Errorf("%d units were given in the %v from %v on, want at most %d", n, within, from.Time(), bound)
	}
	if least := int64(4 * setLimit * 7 / 10); int64(len(f.members[0].times)) < least {
		t.Errorf("%d units were given in total, want at least %d", len(f.members[0].times), least)
	}
}
