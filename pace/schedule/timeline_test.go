package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

const second = headgate.Instant(time.Second)

// alone is the plan of the only instance, half that of one of two.
func alone(t *testing.T, limit int64) Plan {
	t.Helper()
	return fleet(t, limit, 1)[0]
}

func half(t *testing.T, limit int64) Plan {
	t.Helper()
	return fleet(t, limit, 2)[0]
}

// TestTimelineStories tells what an instance has in windows of a second as plans come:
// wall and monotonic time are one here, and begin with 0.
func TestTimelineStories(t *testing.T) {
	type told struct {
		at            float64 // seconds
		plan          Plan
		from, settled float64
	}
	for _, c := range []struct {
		name string
		told []told
		asks []float64
		want string // units, or - before the first plan
	}{
		{
			"nothing before the first plan begins",
			[]told{{0, alone(t, 10), 2, 0}},
			[]float64{0, 1.9, 2, 3},
			"- - 10 10",
		},
		{
			"a plan that is told ahead of time holds from its edge on",
			[]told{{0, alone(t, 10), 0, 0}, {0.5, alone(t, 20), 3, 2}},
			[]float64{1, 2.9, 3},
			"10 10 20",
		},
		{
			"what raises the part waits until it is settled, and then for the edge",
			[]told{{0, alone(t, 10), 0, 0}, {0.5, alone(t, 20), 1, 2.5}},
			[]float64{1, 2, 2.6, 3},
			"10 10 10 20",
		},
		{
			"what lowers it does not wait",
			[]told{{0, alone(t, 10), 0, 0}, {0.5, half(t, 10), 1, 2.5}},
			[]float64{0.9, 1, 2, 3},
			"10 5 5 5",
		},
		{
			"nor does it when it is told late",
			[]told{{0, alone(t, 10), 0, 0}, {1.5, half(t, 10), 1, 2}},
			[]float64{1.4, 1.6, 2},
			"10 5 5",
		},
		{
			"a joiner has nothing before its plan is settled",
			[]told{{0, half(t, 10), 1, 2.5}},
			[]float64{0, 1, 2.6, 3},
			"- 0 0 5",
		},
		{
			"several that wait: the least of them, from the newest that is settled on",
			[]told{{0, alone(t, 10), 0, 0}, {0, alone(t, 30), 1, 9}, {0, alone(t, 4), 2, 3}, {0, alone(t, 50), 3, 5}},
			[]float64{0, 1, 2, 3, 4, 5, 6},
			"10 10 4 4 4 50 50",
		},
		{
			"one that is replaced before it begins lessens the part until the other is settled",
			[]told{{0, alone(t, 10), 0, 0}, {0, half(t, 10), 3, 2}, {0.5, alone(t, 10), 1, 4}},
			[]float64{1, 2, 3, 4, 5},
			"10 10 5 10 10",
		},
		{
			"one that is settled at once replaces those that would begin later",
			[]told{{0, alone(t, 10), 0, 0}, {0, alone(t, 7), 3, 0}, {0, alone(t, 20), 2, 0}},
			[]float64{1, 2, 3},
			"10 20 20",
		},
		{
			"of two for one edge the newer",
			[]told{{0, alone(t, 10), 0, 0}, {0, alone(t, 7), 2, 0}, {0, alone(t, 20), 2, 0}},
			[]float64{1, 2},
			"10 20",
		},
		{
			"of two for one edge the lesser until the newer is settled",
			[]told{{0, alone(t, 10), 0, 0}, {0, alone(t, 7), 2, 1}, {0, alone(t, 20), 2, 4}},
			[]float64{1, 2, 3, 4},
			"10 7 7 20",
		},
		{
			"a time within a window means its end",
			[]told{{0, alone(t, 10), 0, 0}, {0, alone(t, 20), 1.5, 0}},
			[]float64{1, 1.6, 2},
			"10 10 20",
		},
		{
			"but for the first plan",
			[]told{{0, alone(t, 10), 0.5, 0}},
			[]float64{0.4, 0.5, 1},
			"- 10 10",
		},
		{
			"a clock that steps back does not end a plan",
			[]told{{0, alone(t, 10), 0, 0}, {0, alone(t, 20), 3, 0}},
			[]float64{1, 3, 1, 0},
			"10 20 20 20",
		},
		{
			"the same plan again changes nothing, though it is told for later",
			[]told{{0, alone(t, 10), 0, 0}, {0.5, alone(t, 20), 2, 5}, {0.5, alone(t, 20), 3, 0}},
			[]float64{1, 2, 3},
			"10 20 20",
		},
		{
			"told again for sooner, it holds sooner",
			[]told{{0, alone(t, 10), 0, 0}, {0, alone(t, 20), 5, 0}, {0, alone(t, 20), 2, 0}},
			[]float64{1, 2, 5},
			"10 20 20",
		},
		{
			"of the zero plan nobody has anything",
			[]told{{0, alone(t, 10), 0, 0}, {0, Plan{}, 1, 0}},
			[]float64{0, 1, 2},
			"10 0 0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var line Timeline
			var got []any
			at := func(s float64) headgate.Instant { return headgate.Instant(s * float64(second)) }
			told := c.told
			for _, ask := range c.asks {
				for len(told) > 0 && told[0].at <= ask {
					line.Add(Change{Plan: told[0].plan, From: at(told[0].from), Settled: at(told[0].settled)})
					told = told[1:]
				}
				if w, ok := line.At(at(ask), at(ask)); ok {
					got = append(got, w.Part)
				} else {
					got = append(got, "-")
				}
			}
			if text := fmt.Sprintln(got...); text != c.want+"\n" {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// TestTimelineLengths: a plan whose windows are longer begins with one of them, and the
// old windows end there. Until it is settled nobody has anything.
func TestTimelineLengths(t *testing.T) {
	long := alone(t, 30)
	long.Per = 3 * time.Second
	var line Timeline
	line.Add(Change{Plan: alone(t, 10), Revision: 1})
	line.Add(Change{Plan: long, From: 4 * second, Settled: 7 * second, Revision: 2}) // From 6 s on.
	for _, c := range []struct {
		at   float64
		want Window
	}{
		{5.5, Window{Number: 5, Start: 5 * second, Plan: alone(t, 10), Part: 10, Revision: 1, Revised: 6 * second}},
		{6.5, Window{Number: 6, Start: 6 * second, Plan: alone(t, 10), Part: 0, Revision: 1, Revised: math.MaxInt64}},
		{8.5, Window{Number: 8, Start: 8 * second, Plan: alone(t, 10), Part: 0, Revision: 1, Revised: math.MaxInt64}},
		{9.5, Window{Number: 3, Start: 9 * second, Plan: long, Part: 30, Revision: 2, Revised: math.MaxInt64}},
	} {
		at := headgate.Instant(c.at * float64(second))
		w, ok := line.At(at, at)
		if !ok || !w.Plan.Equal(c.want.Plan) {
			t.Fatalf("at %v: %+v", c.at, w)
		}
		if w.Plan = c.want.Plan; w.Number != c.want.Number || w.Start != c.want.Start || w.Part != c.want.Part || w.Revision != c.want.Revision || w.Revised != c.want.Revised {
			t.Errorf("at %v: %+v, want %+v", c.at, w, c.want)
		}
	}
}

// TestTimelineFull: of more changes than are kept the newest holds in its time, and before
// it nobody has more than any of them gives.
func TestTimelineFull(t *testing.T) {
	var line Timeline
	line.Add(Change{Plan: alone(t, 100)})
	const many = 5 * maxChanges
	for k := range int64(many) {
		line.Add(Change{Plan: alone(t, 1000-k), From: headgate.Instant(1+k) * second, Settled: many * second, Revision: k})
	}
	if n := len(line.changes); n != maxChanges {
		t.Fatalf("%d changes are kept", n)
	}
	for at := range headgate.Instant(many) {
		w, _ := line.At(at*second, at*second)
		want := int64(100) // As long as nothing is settled.
		if at >= maxChanges-2 {
			want = 0 // What was merged has begun.
		}
		if w.Part != want {
			t.Fatalf("%d units at %d, want %d", w.Part, at, want)
		}
	}
	if w, _ := line.At(many*second, many*second); w.Part != 1000-many+1 || len(line.changes) != 1 {
		t.Errorf("%+v", w)
	}
	// A source that tells again and again fills nothing.
	for k := range int64(many) {
		line.Add(Change{Plan: alone(t, 1+k%2), From: headgate.Instant(many+k/9) * second})
	}
	if n := len(line.changes); n > many/9+3 {
		t.Errorf("%d changes are kept", n)
	}
}

// TestTimelineCorrected: a plan that corrects one which has begun has begun too, whatever
// the clock shows by then.
func TestTimelineCorrected(t *testing.T) {
	var line Timeline
	line.Add(Change{Plan: alone(t, 10), From: 3 * second})
	line.At(3*second, 3*second)
	line.Add(Change{Plan: alone(t, 20), From: 3 * second})
	if w, ok := line.At(1*second, 4*second); !ok || w.Part != 20 || w.Number != 1 || w.Revised != math.MaxInt64 {
		t.Errorf("%+v", w)
	}
}

// TestTimelineLast tells the newest.
func TestTimelineLast(t *testing.T) {
	var line Timeline
	if _, ok := line.Last(); ok {
		t.Error("there is a last change")
	}
	if w, ok := line.At(5, 5); ok || w.Revised != math.MaxInt64 {
		t.Errorf("%+v", w)
	}
	if _, _, _, ok := line.After(0, 1); ok {
		t.Error("units come of no plan")
	}
	line.Add(Change{Plan: alone(t, 10), Revision: 7})
	line.Add(Change{Plan: alone(t, 20), From: 9 * second, Revision: 8})
	line.Add(Change{Plan: alone(t, 20), From: 9 * second, Revision: 9})
	if c, ok := line.Last(); !ok || c.Limit != 20 || c.Revision != 9 || len(line.changes) != 2 {
		t.Errorf("%+v", c)
	}
}

// effective gives the part of the newest plan that has begun by a window's start, by
// looking through all that was ever told. All windows have one length.
func effective(told []Change, at headgate.Instant) int64 {
	for _, c := range slices.Backward(told) {
		if c.From <= at {
			return c.Part(c.Window(at))
		}
	}
	return 0
}

// TestTimelineAfter holds After to counting window by window, and to what then comes:
// no unit comes sooner than it says.
func TestTimelineAfter(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	for range inputs() / 10 {
		var line Timeline
		var told []Change
		for rev := range 1 + r.Int64N(5) {
			n := 1 + r.IntN(4)
			plan := fleet(t, r.Int64N(8), n)[r.IntN(n)]
			if r.IntN(3) == 0 {
				plan = unevenFleet(t, plan.Limit, drawUnits(r, plan.Limit, n))[r.IntN(n)]
			}
			c := Change{Plan: plan, From: headgate.Instant(r.Int64N(12)) * second, Revision: rev}
			if r.IntN(2) == 0 {
				c.Settled = headgate.Instant(r.Int64N(15)) * second
			}
			told = append(told, c)
			line.Add(c)
		}
		now := headgate.Instant(r.Int64N(6))
		line.At(now*second, now*second)
		from, need := now+headgate.Instant(r.Int64N(9)), 1+r.Int64N(12)
		start, before, _, ok := line.After(from*second, need)
		at, units := from, int64(0)
		for ; at < from+4000 && units+effective(told, at*second) < need; at++ {
			units += effective(told, at*second)
		}
		if ok != (at < from+4000) || ok && (start != at*second || before != units) {
			t.Fatalf("%+v: %d units since %d come at %v, after %d, %v; want %d, after %d", told, need, from, start.Time(), before, ok, at, units)
		}
		had := int64(0)
		for at := from; at < from+30; at++ {
			w, _ := line.At(at*second, at*second)
			if had += w.Part; had >= need && (!ok || at*second < start) {
				t.Fatalf("%+v: %d units since %d have come at %d, sooner than %v", told, need, from, at, start.Time())
			}
		}
	}
}

// TestTimelineAfterLengths: of windows that a change of their length cuts off, all their
// units may come.
func TestTimelineAfterLengths(t *testing.T) {
	long := alone(t, 30)
	long.Per = 4 * time.Second
	var line Timeline
	line.Add(Change{Plan: long})
	line.Add(Change{Plan: alone(t, 5), From: 6 * second})
	for _, c := range []struct {
		need  int64
		start headgate.Instant
		had   int64
	}{{30, 0, 0}, {31, 4, 30}, {60, 4, 30}, {61, 6, 60}, {66, 7, 65}} {
		if start, had, _, ok := line.After(0, c.need); !ok || start != c.start*second || had != c.had {
			t.Errorf("%d units come at %v, after %d, want %d, after %d", c.need, start.Time(), had, c.start, c.had)
		}
	}
}
