package pacing

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// The tests require these values of one instance with a limit of 10,000 a second.
const (
	smoothLimit   = 10_000
	slot          = 10 * time.Millisecond
	mostVariation = 0.2 // of the slots' counts, when demand exceeds the limit
	leastSmoothed = 0.99
	mostAdded     = 2500 * time.Microsecond // 99th percentile of the waits, with a demand of half the limit
)

// demand is the demand on one instance. No caller waits longer than a second.
type demand struct {
	*fleet

	from  time.Time       // the first second
	waits []time.Duration // waiting times of the served callers
}

// demandOf starts one instance with the smoothing, and requests each permits at a number of
// moments in each second.
func demandOf(t *testing.T, smoothing pace.Smoothing, seconds, moments, each int64) *demand {
	t.Helper()
	f := start(t, settings{limit: smoothLimit, instances: 1, smoothing: smoothing, keep: true})
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
		elapsed := time.Since(came)
		if errors.Is(err, pace.ErrTimeout) || !in.note(at, err) {
			return
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		d.waits = append(d.waits, elapsed)
	})
}

// judgeVariation checks that the slots of the seconds have nearly equal counts. Without
// smoothing, it checks that one slot of each second has nearly all permits.
func (d *demand) judgeVariation(t *testing.T, seconds int) {
	t.Helper()
	v := variation(slots(d.times(), headgate.Instant(d.from.UnixNano()), slot, seconds*int(time.Second/slot)))
	t.Logf("%v: coefficient of variation %.3f", d.smoothing, v)
	if d.smoothing != pace.Off && v > mostVariation || d.smoothing == pace.Off && v < 9 {
		t.Errorf("%v: coefficient of variation %.3f, want at most %v, or at least 9 without smoothing", d.smoothing, v, mostVariation)
	}
}

// TestSmoothing has a demand of three times the limit at the start of each second. The permits
// are spread over the second, and at most one percent is lost.
func TestSmoothing(t *testing.T) {
	const seconds = 3
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		t.Run(smoothing.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := demandOf(t, smoothing, seconds, 1, 3*smoothLimit)
				d.judge(t, leastSmoothed)
				d.judgeVariation(t, seconds)
			})
		})
	}
}

// TestSmoothingIsFree checks that even demand of half the limit hardly waits.
func TestSmoothingIsFree(t *testing.T) {
	for _, smoothing := range []pace.Smoothing{pace.EvenSpread, pace.PID} {
		t.Run(smoothing.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { demandOf(t, smoothing, 2, smoothLimit/2, 1).judgeWaits(t, smoothLimit) })
		})
	}
}

// judgeWaits checks the number of served callers, and that the 99th percentile of their waits is at most mostAdded.
func (d *demand) judgeWaits(t *testing.T, served int) {
	t.Helper()
	p99 := percentile(d.waits, 99)
	t.Logf("%d callers were served, with a p99 wait of %v", len(d.waits), p99)
	if len(d.waits) != served || p99 > mostAdded {
		t.Errorf("%d callers were served with a p99 wait of %v, want %d and at most %v", len(d.waits), p99, served, mostAdded)
	}
}

// TestLearning has a burst of half the limit at the start of each second. PID learns that the
// burst is harmless, and delays it less than even smoothing.
func TestLearning(t *testing.T) {
	waits := map[pace.Smoothing]time.Duration{}
	for _, smoothing := range []pace.Smoothing{pace.EvenSpread, pace.PID} {
		synctest.Test(t, func(t *testing.T) {
			const seconds = 8
			d := demandOf(t, smoothing, seconds, 1, smoothLimit/2)
			waits[smoothing] = percentile(d.waits[len(d.waits)-smoothLimit/2:], 99)
			t.Logf("%v: the p99 wait in the last second is %v", smoothing, waits[smoothing])
		})
	}
	if even, pid := waits[pace.EvenSpread], waits[pace.PID]; even < 450*time.Millisecond || pid > even/4 {
		t.Errorf("the p99 wait is %v with even and %v with pid; want at least 450ms, and a quarter of it with pid", even, pid)
	}
}
