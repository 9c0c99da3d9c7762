package offset_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/offset"
)

const (
	ms     = time.Millisecond
	second = time.Second
)

// world is a server's clock as Memcached keeps it, and this process's clock. It knows the
// truth: at the k-th tick, at ticks[k] of this process's clock, the second shown[k] begins.
type world struct {
	ticks []time.Duration
	shown []int64
}

// newWorld makes a server with a number of ticks, each late by late(k).
func newWorld(start time.Duration, seconds int, first int64, late func(k int) time.Duration) *world {
	w := &world{}
	for k := range seconds {
		w.ticks, w.shown = append(w.ticks, start), append(w.shown, first+int64(k))
		start += second + late(k)
	}
	return w
}

// leap makes the clock show n more from the k-th tick on.
func (w *world) leap(k int, n int64) {
	for ; k < len(w.shown); k++ {
		w.shown[k] += n
	}
}

// at gives the index of the last tick before time m.
func (w *world) at(m time.Duration) int {
	k := len(w.ticks) - 1
	for w.ticks[k] > m {
		k--
	}
	return k
}

// truth gives the true offset at time m: the server's clock shows a whole second at its tick,
// and runs evenly to the next tick.
func (w *world) truth(m time.Duration) time.Duration {
	k := w.at(m)
	length := w.ticks[k+1] - w.ticks[k]
	part := time.Duration(float64(m-w.ticks[k]) / float64(length) * float64(second))
	return time.Duration(w.shown[k])*second + part - m
}

// late gives the sum of the lateness of the last n ticks before m, and of the next tick.
func (w *world) late(m time.Duration, n int) time.Duration {
	k := w.at(m) + 1
	from := max(0, k-n)
	return w.ticks[k] - w.ticks[from] - time.Duration(k-from)*second
}

// ask takes a sample at m. there and back are the network delays.
func (w *world) ask(m, there, back time.Duration) offset.Sample {
	return offset.Sample{Before: m, After: m + there + back, Second: w.shown[w.at(m+there)]}
}

func newEstimator(tb testing.TB, config offset.Config) *offset.Estimator {
	tb.Helper()
	e, err := offset.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// holds fails the test unless the truth is within the estimate's bound.
func holds(tb testing.TB, e *offset.Estimator, w *world, m time.Duration) offset.Estimate {
	tb.Helper()
	got, ok := e.At(m)
	if !ok {
		tb.Fatalf("no estimate at %v", m)
	}
	if off := (got.Offset - w.truth(m)).Abs(); off > got.Bound {
		tb.Fatalf("at %v: off by %v, and the bound is %v", m, off, got.Bound)
	}
	return got
}

// dumb is the slow twin: it keeps every sample, and ages each to the requested time.
type dumb struct {
	drift, lag float64
	samples    []offset.Sample
}

func (d *dumb) interval(m time.Duration) (low, high float64) {
	low, high = -1e30, 1e30
	for _, s := range d.samples {
		age := float64(m - s.Before)
		low = max(low, float64(s.Second)*1e9-float64(s.After)-age*(d.drift+d.lag)/1e6+
			float64(s.After-s.Before)*0)
		high = min(high, float64(s.Second+1)*1e9-float64(s.Before)+age*d.drift/1e6)
	}
	return low, high
}

// TestTwin: over random samples of a clock within its bounds, the estimator agrees with the
// intersection of all samples, and contains the truth.
func TestTwin(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		// Small numbers keep the twin's floating point exact to a microsecond.
		w := newWorld(-time.Duration(r.Int64N(int64(second))), 400, int64(r.IntN(1000)), func(int) time.Duration {
			return time.Duration(r.Int64N(int64(3*ms))) - ms // The sum of drift and lateness.
		})
		e := newEstimator(t, offset.Config{Drift: 1100, Lag: 1000})
		twin := &dumb{drift: 1100, lag: 1000}
		for m := second; m < 380*second; {
			s := w.ask(m, time.Duration(r.ExpFloat64()*float64(ms)), time.Duration(r.ExpFloat64()*float64(ms)))
			twin.samples = append(twin.samples, s)
			if o := e.Add(s); o != offset.Began && o != offset.Narrowed {
				t.Fatalf("seed %d at %v: %v", seed, m, o)
			}
			got := holds(t, e, w, s.After)
			low, high := twin.interval(s.After)
			if d := float64(got.Offset) - (low+high)/2; d > 1e3 || d < -1e3 {
				t.Fatalf("seed %d at %v: off the twin by %v ns", seed, m, d)
			}
			if d := float64(got.Bound) - (high-low)/2; d > 1e3 || d < -1e3 {
				t.Fatalf("seed %d at %v: bound %v, the twin's %v ns", seed, m, got.Bound, (high-low)/2)
			}
			m = s.After + time.Duration(r.Int64N(int64(5*second)))
			holds(t, e, w, m)
		}
	}
}

// TestNext: samples at the times of Next halve the bound, down to the trip, except for the few
// samples that try an end.
func TestNext(t *testing.T) {
	const trip = ms / 5
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(-time.Duration(r.Int64N(int64(second))), 100, 1_795_000_000, func(int) time.Duration { return ms })
		e := newEstimator(t, offset.Config{})
		m, last, halved := second, second, 0
		for range 14 {
			next := e.Next(m, trip)
			if next < m || next > m+second {
				t.Fatalf("seed %d: at %v asks at %v", seed, m, next)
			}
			s := w.ask(next, trip/2, trip/2)
			e.Add(s)
			m = s.After
			got := holds(t, e, w, m)
			if got.Bound > last+2*ms { // The interval ages by 2.2 ms in a second; the bound is half of that.
				t.Fatalf("seed %d: the bound grows from %v to %v", seed, last, got.Bound)
			}
			if got.Bound < last/2+2*ms {
				halved++
			}
			last = got.Bound
		}
		if halved < 10 || last > 3*ms {
			t.Errorf("seed %d: of 14 samples %d halve the bound, and leave %v", seed, halved, last)
		}
	}
}

// TestSweep: three sweeps of 9 reach about a millisecond in about four seconds.
func TestSweep(t *testing.T) {
	const trip = ms / 5
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := newWorld(-time.Duration(r.Int64N(int64(second))), 100, 1_795_000_000, func(int) time.Duration { return ms / 2 })
		e := newEstimator(t, offset.Config{})
		m := second
		for range 3 {
			var times [9]time.Duration
			e.Sweep(m, trip, times[:])
			for _, at := range times {
				if at < m {
					t.Fatalf("seed %d: asks at %v, before %v", seed, at, m)
				}
				s := w.ask(at, time.Duration(r.Int64N(int64(trip))), trip/2)
				e.Add(s)
				m = max(at, s.After-2*trip) // Two neighbouring queries may overlap.
			}
		}
		if got := holds(t, e, w, m); got.Bound > 5*ms/2 || m > 6*second {
			t.Errorf("seed %d: after %v the bound is %v", seed, m-second, got.Bound)
		}
	}
}

// settle narrows the estimate as far as possible, from m on, and gives the time afterwards.
func settle(e *offset.Estimator, w *world, m time.Duration) time.Duration {
	for range 14 {
		s := w.ask(e.Next(m, ms/5), ms/10, ms/10)
		e.Add(s)
		m = s.After
	}
	return m
}

// TestSteps: the first sample that shows a contradiction restarts the estimate. The truth is
// within the bound from then on.
func TestSteps(t *testing.T) {
	cases := []struct {
		name string
		leap int64
		held time.Duration // How long the server did not tick.
		want offset.Outcome
	}{
		{"nothing", 0, 0, offset.Narrowed},
		{"two at once", 1, 0, offset.Restarted},
		{"a minute on", 60, 0, offset.Restarted},
		{"back a second", -1, 0, offset.Restarted},
		{"back to 1970", -1_794_999_000, 0, offset.Restarted},
		{"held for 20 ms", 0, 20 * ms, offset.Followed},
		{"held for 300 ms", 0, 300 * ms, offset.Restarted},
	}
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			const when = 30
			w := newWorld(0, 100, 1_795_000_000, func(tick int) time.Duration {
				if tick == when {
					return ms + k.held
				}
				return ms
			})
			w.leap(when+1, k.leap)
			e := newEstimator(t, offset.Config{})
			m := settle(e, w, w.ticks[when-15]+second/2)
			holds(t, e, w, m)
			// The sample is in the middle of a second, or while the due tick is delayed.
			s := w.ask(w.ticks[when+1]+second/2, 0, ms/5)
			if k.held > 0 {
				s = w.ask(w.ticks[when+1]-ms, 0, ms/5)
			}
			if got := e.Add(s); got != k.want {
				t.Fatalf("%v, want %v", got, k.want)
			}
			m = settle(e, w, w.ticks[when+2])
			if got := holds(t, e, w, m); got.Bound > 3*ms {
				t.Errorf("the bound stays at %v", got.Bound)
			}
		})
	}
}

// TestLateTicks: the ticks of a server come later than Config allows, sometimes by 40 ms. The
// error of the estimate is at most the bound and the lateness of the last ticks. After a
// while of ticks within Config, the truth is within the bound again.
func TestLateTicks(t *testing.T) {
	outcomes := map[offset.Outcome]int{}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 4))
		quiet := func(k int) bool { return k/100%2 == 1 }
		w := newWorld(0, 900, 1_795_000_000, func(k int) time.Duration {
			if !quiet(k) && r.IntN(20) == 0 {
				return time.Duration(r.Int64N(int64(40 * ms)))
			}
			return time.Duration(r.Int64N(int64(3 * ms / 2)))
		})
		e := newEstimator(t, offset.Config{})
		m := settle(e, w, second/2)
		for m < 800*second {
			s := w.ask(e.Next(m, ms/5), ms/10, ms/10)
			o := e.Add(s)
			outcomes[o]++
			m = s.After
			got, _ := e.At(m)
			if off := (got.Offset - w.truth(m)).Abs(); off > got.Bound+w.late(m, 20) {
				t.Fatalf("seed %d at %v: off by %v, bound %v, late by %v", seed, m, off, got.Bound, w.late(m, 20))
			}
			if k := w.at(m); quiet(k) && k%100 > 30 {
				if holds(t, e, w, m); o != offset.Narrowed || got.Bound > 5*ms {
					t.Fatalf("seed %d at %v: %v, bound %v", seed, m, o, got.Bound)
				}
			}
		}
	}
	if outcomes[offset.Followed] < 100 || outcomes[offset.Restarted] > outcomes[offset.Followed]/2 {
		t.Errorf("%v: the test shows little, or the estimate begins anew too often", outcomes)
	}
	t.Log(outcomes)
}

// TestAges: the bound grows with the time since the last sample: above by drift, and below by
// drift and lag.
func TestAges(t *testing.T) {
	e := newEstimator(t, offset.Config{Drift: 100, Lag: 2000})
	e.Add(offset.Sample{Before: 0, After: 0, Second: 1000})
	for _, k := range []struct {
		after, middle, bound time.Duration
	}{
		{0, 500 * ms, 500 * ms},
		{10 * second, 490 * ms, 511 * ms},             // -21 ms and +1 ms.
		{1000 * second, -500 * ms, 1600 * ms},         // -2.1 s and +0.1 s.
		{100_000 * second, -99500 * ms, 110_500 * ms}, // -210 s and +10 s.
	} {
		got, ok := e.At(k.after)
		if !ok || got.Offset != 1000*second+k.middle || got.Bound != k.bound {
			t.Errorf("after %v: %v ± %v, want 1000s and %v ± %v", k.after, got.Offset, got.Bound, k.middle, k.bound)
		}
	}
}

// TestNonsense: an invalid sample leaves the estimate unchanged.
func TestNonsense(t *testing.T) {
	e := newEstimator(t, offset.Config{})
	if _, ok := e.At(second); ok {
		t.Error("an estimate of nothing")
	}
	if got := e.Next(second, ms); got != second {
		t.Errorf("the first sample waits until %v", got)
	}
	good := offset.Sample{Before: second, After: second + ms, Second: 1_795_000_000}
	if o := e.Add(good); o != offset.Began {
		t.Error(o)
	}
	want, _ := e.At(2 * second)
	for _, s := range []offset.Sample{
		{Before: 2 * second, After: second, Second: good.Second},
		{Before: -1, After: second, Second: good.Second},
		{Before: second, After: 1 << 62, Second: good.Second},
		{Before: second, After: second, Second: -1},
		{Before: second, After: second, Second: 1 << 40},
	} {
		if o := e.Add(s); o != offset.Ignored {
			t.Errorf("%+v: %v", s, o)
		}
	}
	if got, _ := e.At(2 * second); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	// A late sample counts for its own time.
	if o := e.Add(offset.Sample{Before: second / 2, After: second / 2, Second: good.Second}); o != offset.Narrowed {
		t.Error(o)
	}
	e.Reset()
	if _, ok := e.At(second); ok {
		t.Error("an estimate after Reset")
	}
	for _, c := range []offset.Config{{Drift: -1}, {Lag: 1 << 30}, {Slack: -1}, {Slack: second}} {
		if _, err := offset.New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
