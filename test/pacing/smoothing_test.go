package pacing

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// The bars of smoothing, for one instance with 10,000 a second.
const (
	smoothLimit   = 10_000
	slot          = 10 * time.Millisecond
	mostVariation = 0.2 // of the counts of slots, when more is asked for than there is
	leastSmoothed = 0.99
	mostAdded     = 2500 * time.Microsecond // to 99 of 100 calls, when half the limit is asked for
)

// demand is what one instance is asked for. Nobody waits for more than a second.
type demand struct {
	*fleet

	from  time.Time       // the first second
	waits []time.Duration // of those who were served
}

// ask asks an instance that paces so for as many permits at each of the moments of a second,
// for some seconds.
func ask(t *testing.T, smoothing pace.Smoothing, seconds, moments, each int64) *demand {
	t.Helper()
	f := start(t, order{limit: smoothLimit, instances: 1, smoothing: smoothing, keep: true})
	d := &demand{fleet: f, from: time.Now().Truncate(time.Second).Add(time.Second)}
	f.first, f.seconds = d.from.Unix(), seconds
	for k := range seconds * moments {
		sleepUntil(d.from.Add(time.Second / time.Duration(moments) * time.Duration(k)))
		for range each {
			d.once(f.members[0])
		}
	}
	sleepUntil(d.from.Add(time.Duration(seconds)*time.Second + time.Second/2))
	f.end(t)
	return d
}

func (d *demand) once(in *instance) {
	came := time.Now()
	in.AcquireFunc(1, time.Second, func(at headgate.Instant, err error) {
		took := time.Since(came)
		if errors.Is(err, pace.ErrTimeout) || !in.note(at, err) {
			return
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		d.waits = append(d.waits, took)
	})
}

// judgeVariation holds that the slots of so many seconds are nearly alike, or, without
// smoothing, that nearly all is in one of each second.
func (d *demand) judgeVariation(t *testing.T, seconds int) {
	t.Helper()
	v := variation(slots(d.times(), headgate.Instant(d.from.UnixNano()), slot, seconds*int(time.Second/slot)))
	t.Logf("%v: coefficient of variation %.3f", d.smoothing, v)
	if d.smoothing != pace.Off && v > mostVariation || d.smoothing == pace.Off && v < 9 {
		t.Errorf("%v: coefficient of variation %.3f, want at most %v, and about 10 without smoothing", d.smoothing, v, mostVariation)
	}
}

// TestSmoothing: when three times the limit is asked for as each second begins, the
// permits of a second are spread over it, and hardly one is lost.
func TestSmoothing(t *testing.T) {
	const seconds = 3
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		t.Run(smoothing.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := ask(t, smoothing, seconds, 1, 3*smoothLimit)
				d.judge(t, leastSmoothed)
				d.judgeVariation(t, seconds)
			})
		})
	}
}

// TestSmoothingIsFree: who asks for half the limit evenly does not wait for it.
func TestSmoothingIsFree(t *testing.T) {
	for _, smoothing := range []pace.Smoothing{pace.EvenSpread, pace.PID} {
		t.Run(smoothing.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { ask(t, smoothing, 2, smoothLimit/2, 1).judgeWaits(t, smoothLimit) })
		})
	}
}

// judgeWaits holds that so many were served, of whom 99 of 100 waited no longer than the bar.
func (d *demand) judgeWaits(t *testing.T, served int) {
	t.Helper()
	p99 := percentile(d.waits, 99)
	t.Logf("%d were served, and waited %v at p99", len(d.waits), p99)
	if len(d.waits) != served || p99 > mostAdded {
		t.Errorf("%d were served, and waited %v at p99, want %d and %v", len(d.waits), p99, served, mostAdded)
	}
}

// TestLearning: half the limit that is asked for at once as each second begins is no harm.
// PID learns so, and makes it wait for the less; even smoothing cannot know.
func TestLearning(t *testing.T) {
	waits := map[pace.Smoothing]time.Duration{}
	for _, smoothing := range []pace.Smoothing{pace.EvenSpread, pace.PID} {
		synctest.Test(t, func(t *testing.T) {
			const seconds = 8
			d := ask(t, smoothing, seconds, 1, smoothLimit/2)
			waits[smoothing] = percentile(d.waits[len(d.waits)-smoothLimit/2:], 99)
			t.Logf("%v: %v at p99 in the last second", smoothing, waits[smoothing])
		})
	}
	if even, pid := waits[pace.EvenSpread], waits[pace.PID]; even < 450*time.Millisecond || pid > even/4 {
		t.Errorf("waits at p99: %v with even, %v with pid, want half a second and a quarter of that", even, pid)
	}
}
