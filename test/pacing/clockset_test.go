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

// setLimit is that of an instance whose clock is set.
const setLimit = 1_000

// What an instance gives while its clock is set. A window never begins before the one
// before is over. When the clock was set forward by at most 100 ms and a tenth of a window,
// windows are shorter by a thousandth until they have caught up; when by more, or back,
// one window is longer. So an interval that is a thousandth shorter than a window touches
// two, as ever, and has no more than 2R; one as long as a window may have 3R. With even
// spreading that has R and a thousandth, 10 ms worth of what nobody had wanted, and a few
// units for the edges.
const shorter = time.Second - time.Second/1000

func boundWhileSet(smoothing pace.Smoothing) (units int64, within time.Duration) {
	if smoothing == pace.EvenSpread {
		return setLimit + setLimit/1000 + setLimit/100 + 5, time.Second
	}
	return 2 * setLimit, shorter
}

// TestClockIsSet: the clock of an instance is set just before the end of a window, of
// which nothing was wanted until then.
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
	f := start(t, order{limit: setLimit, instances: 1, smoothing: smoothing, keep: true, wall: func() headgate.Instant {
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
	t.Logf("at most %.4f of the limit within %v, %.4f within a second", float64(n)/setLimit, within, float64(second)/setLimit)
	if n > bound {
		t.Errorf("%d were given in the %v from %v on, want at most %d", n, within, from.Time(), bound)
	}
	if least := int64(4 * setLimit * 7 / 10); int64(len(f.members[0].times)) < least {
		t.Errorf("%d were given in all, want at least %d", len(f.members[0].times), least)
	}
}
