package pacing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/schedule"
)

// How much a fleet gives in an interval as long as a window that begins anywhere, by a
// right clock, when the instances' clocks are wrong by less than half a window, and
// steadily. R is the limit, W the length of a window, N the number of instances,
// r = R mod N, and a(i, w) instance i's part of window w, which is R/N rounded down or up: in
// every window r instances have one unit more than the others.
//
// The windows of an instance follow each other without gaps, so the interval touches at
// most two of each instance. By right clocks they are the same two for all, m and m+1,
// whose parts add up to R each: no more than
//
//	2R.
//
// It is reached when nothing is asked for in a window until its end, and everything then.
//
// By wrong clocks some instances are ahead, and for them it is m+1 and m+2. For the
// others, who are behind, it is m and m+1. All have their parts of m+1, which add up to R;
// those behind have a(i, m) besides, and those ahead a(i, m+2). Of these N parts min(2r, N)
// at most are rounded up, where in one window it is r: no more than
//
//	2R + min(r, N-r),
//
// which is at most 2R + N/2, and at most 3R. It is reached when those behind have a unit more in m,
// and those ahead in m+2, and demand begins between the edges of their windows. An
// interval as long as k windows has no more than (k+1)R + min(r, N-r).
//
// With permits that are spread evenly, unit k of window w opens (k + i/N) L/a(i, w) after
// its start, where L is W less 2 ms: in an interval as long as a window no more open than
// the larger of the two parts. These add up to R + min(2r, N-r) at most. Besides, an instance has what had
// opened before the interval and is still there: 10 ms worth of units, but at least one,
// when nobody wanted them; or, when somebody did, what opened since it was last looked
// at, in half a millisecond and by how much the machine is late. No more than
//
//	R + min(2r, N-r) + R * max(10 ms, lateness)/L + N,
//
// nor than without spreading. The clocks matter for no more than r units: it is 1.0123 R
// for 50,000 a second over 96 instances.
//
// With pid, units open up to five times as fast when demand lets them: the bound is that
// without spreading.
func bound(o order) int64 {
	n := int64(o.instances)
	r := o.limit % n
	unspread := 2*o.limit + min(r, n-r)
	if o.smoothing != pace.EvenSpread {
		return unspread
	}
	const length = time.Second - 2*time.Millisecond
	return min(unspread, o.limit+min(2*r, n-r)+o.limit*int64(max(o.late, 10*time.Millisecond))/int64(length)+n)
}

// off is how far the clocks of these tests are wrong at most.
const off = 100 * time.Millisecond

// right is clocks that are not wrong.
func right(int) time.Duration { return 0 }

// anyhow gives clocks that are wrong at random.
func anyhow(seed uint64) func(int) time.Duration {
	draw := rand.New(rand.NewPCG(seed, instances))
	wrong := make([]time.Duration, instances)
	for i := range wrong {
		wrong[i] = time.Duration(draw.Int64N(int64(2*off)+1)) - off
	}
	return func(i int) time.Duration { return wrong[i] }
}

// worst gives the clocks with which most is given around the end of window m.
func worst(limit, m int64) func(int) time.Duration {
	return func(i int) time.Duration {
		if part(limit, i, m) < part(limit, i, m+2) {
			return off
		}
		return -off
	}
}

// atWorst is how much that is, while demand begins then.
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

// TestWrongClocks: whatever the clocks and whenever demand begins, no interval of a
// second has more than the bound.
func TestWrongClocks(t *testing.T) {
	for _, limit := range []int64{10, 95, 1_000, tenthIfRaced(50_000)} {
		for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
			t.Run(fmt.Sprint(limit, " ", smoothing), func(t *testing.T) {
				top := int64(0)
				for draw := range uint64(5) {
					ahead := anyhow(draw)
					if draw == 0 {
						ahead = right
					}
					synctest.Test(t, func(t *testing.T) {
						f := start(t, order{limit: limit, instances: instances, smoothing: smoothing, keep: true, ahead: ahead})
						// Before the end of a window, by more or less than clocks are wrong.
						sleepUntil(time.Now().Add(2*time.Second - time.Duration(draw)*off/3 - time.Millisecond))
						f.saturate()
						run(t, 1, f)
						top = max(top, f.judgeIntervals(t))
					})
				}
				t.Logf("at most %.4f of the limit in a second", float64(top)/float64(limit))
			})
		}
	}
}

// judgeIntervals holds that no interval of a second has more than the bound, and gives
// the most of one.
func (f *fleet) judgeIntervals(t *testing.T) int64 {
	t.Helper()
	n, from := most(f.times(), time.Second)
	if n > bound(f.order) {
		t.Errorf("limit %d, %v: %d were given in the second from %v on, want at most %d",
			f.limit, f.smoothing, n, from.Time(), bound(f.order))
	}
	return n
}

// TestBoundIsReached: the bounds without spreading are no larger than they must be.
func TestBoundIsReached(t *testing.T) {
	for _, limit := range []int64{10, 95, 96, 1_000, 5_000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, order{limit: limit, instances: instances, keep: true})
				sleepUntil(time.Now().Add(2*time.Second - time.Millisecond))
				f.saturate()
				run(t, 1, f)
				if n := f.judgeIntervals(t); n != 2*limit {
					t.Errorf("right clocks: %d, want %d", n, 2*limit)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				m := time.Now().Unix() + 1
				f := start(t, order{limit: limit, instances: instances, keep: true, ahead: worst(limit, m)})
				sleepUntil(time.Unix(m+1, 0))
				f.saturate()
				run(t, 1, f)
				if n := f.judgeIntervals(t); n != atWorst(limit, m) {
					t.Errorf("the worst clocks: %d, want %d", n, atWorst(limit, m))
				} else {
					t.Logf("the worst clocks: %.4f of the limit in a second", float64(n)/float64(limit))
				}
			})
		})
	}
	if n := atWorst(10, 1); n != bound(order{limit: 10, instances: instances}) {
		t.Errorf("10 a second: %d at worst, and the bound is %d", n, bound(order{limit: 10, instances: instances}))
	}
}

// TestWrongClocksInRealTime: the same, at the machine's pace. What is given by the
// clocks of the instances is never above the limit.
func TestWrongClocksInRealTime(t *testing.T) {
	t.Parallel() // Both mostly wait, and what is late is no less right.
	m := time.Now().Unix() + 1
	var fleets []*fleet
	for _, o := range []order{
		{limit: 10, ahead: worst(10, m)},
		{limit: 95, ahead: worst(95, m)},
		{limit: 1_000, ahead: worst(1_000, m)},
		{limit: 1_000, ahead: anyhow(1), smoothing: pace.PID},
		{limit: 50_000, ahead: anyhow(2)},
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
		t.Logf("limit %d, %v: at most %.4f of the limit in a second", f.limit, f.smoothing, float64(n)/float64(f.limit))
		f.judge(t, leastInRealTime(f))
	}
}
