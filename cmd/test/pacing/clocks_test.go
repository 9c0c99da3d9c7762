package pacing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// bound returns the most units that a fleet can give in an interval as long as a window. The
// interval may begin at any time of a correct clock. The instances' clocks have constant
// errors of less than half a window.
//
// R is the limit, W the length of a window, N the number of instances, and r = R mod N. a(i, w)
// is instance i's part of window w, which is R/N rounded down or up. In every window, r
// instances have one unit more than the others.
//
// The windows of an instance follow each other without gaps, so the interval touches at most
// two windows of each instance. With correct clocks, these are the same two windows m and m+1
// for all instances. The parts of each window add up to R, so the bound is
//
//	2R.
//
// A fleet reaches this bound if all demand begins at the end of a window.
//
// With clock errors, the interval touches windows m+1 and m+2 of instances that are ahead, and
// windows m and m+1 of instances that are behind. The parts of m+1 add up to R. In addition,
// instances that are behind have a(i, m), and instances that are ahead have a(i, m+2). These
// are N parts, and at most min(2r, N) of the N parts are rounded up. In one window, r parts
// are rounded up. So the bound is
//
//	2R + min(r, N-r),
//
// which is at most 2R + N/2, and at most 3R. A fleet reaches this bound in the following case.
// The instances that are behind have one unit more in m, and the instances that are ahead in
// m+2. Demand begins between the edges of their windows. In an interval of k windows, the
// bound is (k+1)R + min(r, N-r).
//
// With evenly spread permits, unit k of window w opens (k + i/N) L/a(i, w) after the window's
// start, where L is W minus 2 ms. In the interval, an instance opens at most the larger of its
// two parts. These parts add up to at most R + min(2r, N-r). In addition, an instance may have
// units that opened before the interval. Without demand, these are the units of 10 ms, and at
// least one. With demand, these are the units since the last wake-up, which is half a
// millisecond and the machine's delay ago. So the bound is the smaller of the bound above and
//
//	R + min(2r, N-r) + R * max(10 ms, delay)/L + N.
//
// The clock errors add at most r units. For 50,000 a second and 96 instances, the bound is
// 1.0123 R.
//
// With pid, units open up to five times as fast if demand allows it. The bound is then the
// same as without spreading.
func bound(o settings) int64 {
	n := int64(o.instances)
	r := o.limit % n
	unspread := 2*o.limit + min(r, n-r)
	if o.smoothing != pace.EvenSpread {
		return unspread
	}
	const length = time.Second - 2*time.Millisecond
	return min(unspread, o.limit+min(2*r, n-r)+o.limit*int64(max(o.late, 10*time.Millisecond))/int64(length)+n)
}

// off is the maximum error of the clocks in these tests.
const off = 100 * time.Millisecond

// noError returns the error of a correct clock.
func noError(int) time.Duration { return 0 }

// randomErrors returns random clock errors of at most off.
func randomErrors(seed uint64) func(int) time.Duration {
	draw := rand.New(rand.NewPCG(seed, instances))
	wrong := make([]time.Duration, instances)
	for i := range wrong {
		wrong[i] = time.Duration(draw.Int64N(int64(2*off)+1)) - off
	}
	return func(i int) time.Duration { return wrong[i] }
}

// worst returns the clock errors with which the fleet gives the most units around the end of window m.
func worst(limit, m int64) func(int) time.Duration {
	return func(i int) time.Duration {
		if part(limit, i, m) < part(limit, i, m+2) {
			return off
		}
		return -off
	}
}

// atWorst returns this number of units, for demand that begins at that time.
func atWorst(limit, m int64) (units int64) {
	for i := range instances {
		units += part(limit, i, m+1) + max(part(limit, i, m), part(limit, i, m+2))
	}
	return units
}

func part(limit int64, instance int, window int64) int64 {
	plan, _ := schedule.Even(limit, time.Second, instances, instance)
	return plan.Part(window)
}

// TestWrongClocks checks that no interval of a second has more units than the bound, for
// random clock errors and different starts of the demand.
func TestWrongClocks(t *testing.T) {
	for _, limit := range []int64{10, 95, 1_000, tenthIfRaced(50_000)} {
		for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
			t.Run(fmt.Sprint(limit, " ", smoothing), func(t *testing.T) {
				top := int64(0)
				for draw := range uint64(5) {
					ahead := randomErrors(draw)
					if draw == 0 {
						ahead = noError
					}
					synctest.Test(t, func(t *testing.T) {
						f := start(t, settings{limit: limit, instances: instances, smoothing: smoothing, keep: true, ahead: ahead})
						// Demand begins before the end of a window, by a time near the clock error.
						sleepUntil(time.Now().Add(2*time.Second - time.Duration(draw)*off/3 - time.Millisecond))
						f.saturate()
						run(t, 1, f)
						top = max(top, f.judgeIntervals(t))
					})
				}
				t.Logf("maximum in a second: %.4f of the limit", float64(top)/float64(limit))
			})
		}
	}
}

// judgeIntervals checks that no interval of a second has more units than the bound, and
// returns the maximum.
func (f *fleet) judgeIntervals(t *testing.T) int64 {
	t.Helper()
	n, from := most(f.times(), time.Second)
	if n > bound(f.settings) {
		t.Errorf("limit %d, %v: %d units were given in the second from %v on, want at most %d",
			f.limit, f.smoothing, n, from.Time(), bound(f.settings))
	}
	return n
}

// TestBoundIsReached checks that fleets reach the bounds without spreading.
func TestBoundIsReached(t *testing.T) {
	for _, limit := range []int64{10, 95, 96, 1_000, 5_000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, settings{limit: limit, instances: instances, keep: true})
				sleepUntil(time.Now().Add(2*time.Second - time.Millisecond))
				f.saturate()
				run(t, 1, f)
				if n := f.judgeIntervals(t); n != 2*limit {
					t.Errorf("correct clocks: got %d units in a second, want %d", n, 2*limit)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				m := time.Now().Unix() + 1
				f := start(t, settings{limit: limit, instances: instances, keep: true, ahead: worst(limit, m)})
				sleepUntil(time.Unix(m+1, 0))
				f.saturate()
				run(t, 1, f)
				if n := f.judgeIntervals(t); n != atWorst(limit, m) {
					t.Errorf("the worst clock errors: got %d units in a second, want %d", n, atWorst(limit, m))
				} else {
					t.Logf("the worst clock errors: %.4f of the limit in a second", float64(n)/float64(limit))
				}
			})
		})
	}
	if n := atWorst(10, 1); n != bound(settings{limit: 10, instances: instances}) {
		t.Errorf("10 a second: the worst case has %d units, but the bound is %d", n, bound(settings{limit: 10, instances: instances}))
	}
}

// TestWrongClocksInRealTime is TestWrongClocks in real time. It also checks that each second
// of the instances' own clocks has at most the limit.
func TestWrongClocksInRealTime(t *testing.T) {
	t.Parallel() // The fleets mostly wait, and delays do not break the bounds.
	m := time.Now().Unix() + 1
	var fleets []*fleet
	for _, o := range []settings{
		{limit: 10, ahead: worst(10, m)},
		{limit: 95, ahead: worst(95, m)},
		{limit: 1_000, ahead: worst(1_000, m)},
		{limit: 1_000, ahead: randomErrors(1), smoothing: pace.PID},
		{limit: 50_000, ahead: randomErrors(2)},
	} {
		o.instances, o.keep = instances, true
		fleets = append(fleets, start(t, o))
	}
	sleepUntil(time.Unix(m+1, 0))
	for _, f := range fleets {
		f.saturate()
	}
	runUntilUsed(t, 2, fleets...)
	for _, f := range fleets {
		n := f.judgeIntervals(t)
		t.Logf("limit %d, %v: maximum in a second: %.4f of the limit", f.limit, f.smoothing, float64(n)/float64(f.limit))
		f.judge(t, leastInRealTime(f))
	}
}
