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

// alone returns the plan of a single instance, and half the plan of one of two instances.
func alone(t *testing.T, limit int64) Plan {
	t.Helper()
	return fleet(t, limit, 1)[0]
}

func half(t *testing.T, limit int64) Plan {
	t.Helper()
	return fleet(t, limit, 2)[0]
}

// TestTimelineStories checks an instance's parts in windows of a second, while plans arrive.
// Wall and monotonic time are equal here.
func TestTimelineStories(t *testing.T) {
	type added struct {
		at            float64 // seconds
		plan          Plan
		from, settled float64
	}
	for _, c := range []struct {
		name    string
		added   []added
		queries []float64
		want    string // units, or - before the first plan
	}{
		{
			"nothing before the first plan begins",
			[]added{{0, alone(t, 10), 2, 0}},
			[]float64{0, 1.9, 2, 3},
			"- - 10 10",
		},
		{
			"a plan that is added early begins at its edge",
			[]added{{0, alone(t, 10), 0, 0}, {0.5, alone(t, 20), 3, 2}},
			[]float64{1, 2.9, 3},
			"10 10 20",
		},
		{
			"an increase waits until it is settled, and then for the edge",
			[]added{{0, alone(t, 10), 0, 0}, {0.5, alone(t, 20), 1, 2.5}},
			[]float64{1, 2, 2.6, 3},
			"10 10 10 20",
		},
		{
			"a decrease does not wait",
			[]added{{0, alone(t, 10), 0, 0}, {0.5, half(t, 10), 1, 2.5}},
			[]float64{0.9, 1, 2, 3},
			"10 5 5 5",
		},
		{
			"a late decrease does not wait",
			[]added{{0, alone(t, 10), 0, 0}, {1.5, half(t, 10), 1, 2}},
			[]float64{1.4, 1.6, 2},
			"10 5 5",
		},
		{
			"a new instance has nothing before its plan is settled",
			[]added{{0, half(t, 10), 1, 2.5}},
			[]float64{0, 1, 2.6, 3},
			"- 0 0 5",
		},
		{
			"the smallest part of several unsettled plans counts",
			[]added{{0, alone(t, 10), 0, 0}, {0, alone(t, 30), 1, 9}, {0, alone(t, 4), 2, 3}, {0, alone(t, 50), 3, 5}},
			[]float64{0, 1, 2, 3, 4, 5, 6},
			"10 10 4 4 4 50 50",
		},
		{
			"a plan replaced before it begins lowers the part until the newer one is settled",
			[]added{{0, alone(t, 10), 0, 0}, {0, half(t, 10), 3, 2}, {0.5, alone(t, 10), 1, 4}},
			[]float64{1, 2, 3, 4, 5},
			"10 10 5 10 10",
		},
		{
			"a settled plan replaces a plan that would begin later",
			[]added{{0, alone(t, 10), 0, 0}, {0, alone(t, 7), 3, 0}, {0, alone(t, 20), 2, 0}},
			[]float64{1, 2, 3},
			"10 20 20",
		},
		{
			"the newer of two plans for one edge counts",
			[]added{{0, alone(t, 10), 0, 0}, {0, alone(t, 7), 2, 0}, {0, alone(t, 20), 2, 0}},
			[]float64{1, 2},
			"10 20",
		},
		{
			"the smaller of two plans for one edge counts until the newer one is settled",
			[]added{{0, alone(t, 10), 0, 0}, {0, alone(t, 7), 2, 1}, {0, alone(t, 20), 2, 4}},
			[]float64{1, 2, 3, 4},
			"10 7 7 20",
		},
		{
			"a beginning within a window means the window's end",
			[]added{{0, alone(t, 10), 0, 0}, {0, alone(t, 20), 1.5, 0}},
			[]float64{1, 1.6, 2},
			"10 10 20",
		},
		{
			"the first plan may begin within a window",
			[]added{{0, alone(t, 10), 0.5, 0}},
			[]float64{0.4, 0.5, 1},
			"- 10 10",
		},
		{
			"a clock that steps back does not end a plan",
			[]added{{0, alone(t, 10), 0, 0}, {0, alone(t, 20), 3, 0}},
			[]float64{1, 3, 1, 0},
			"10 20 20 20",
		},
		{
			"adding the same plan for later changes nothing",
			[]added{{0, alone(t, 10), 0, 0}, {0.5, alone(t, 20), 2, 5}, {0.5, alone(t, 20), 3, 0}},
			[]float64{1, 2, 3},
			"10 20 20",
		},
		{
			"adding the same plan for earlier has effect",
			[]added{{0, alone(t, 10), 0, 0}, {0, alone(t, 20), 5, 0}, {0, alone(t, 20), 2, 0}},
			[]float64{1, 2, 5},
			"10 20 20",
		},
		{
			"the zero plan gives nothing",
			[]added{{0, alone(t, 10), 0, 0}, {0, Plan{}, 1, 0}},
			[]float64{0, 1, 2},
			"10 0 0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var line Timeline
			var got []any
			at := func(s float64) headgate.Instant { return headgate.Instant(s * float64(second)) }
			added := c.added
			for _, query := range c.queries {
				for len(added) > 0 && added[0].at <= query {
					line.Add(Change{Plan: added[0].plan, From: at(added[0].from), Settled: at(added[0].settled)})
					added = added[1:]
				}
				if w, ok := line.At(at(query), at(query)); ok {
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

// TestTimelineLengths has a plan with longer windows. The plan begins at the edge of such a
// window, where the old windows end. Until the plan is settled, the part is 0.
func TestTimelineLengths(t *testing.T) {
	long := alone(t, 30)
	long.Per = 3 * time.Second
	var line Timeline
	line.Add(Change{Plan: alone(t, 10), Revision: 1})
	line.Add(Change{Plan: long, From: 4 * second, Settled: 7 * second, Revision: 2}) // begins at 6 s
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
			t.Fatalf("at %v s: got %+v, want a window of plan %+v", c.at, w, c.want.Plan)
		}
		if w.Plan = c.want.Plan; w.Number != c.want.Number || w.Start != c.want.Start || w.Part != c.want.Part || w.Revision != c.want.Revision || w.Revised != c.want.Revised {
			t.Errorf("at %v s: got %+v, want %+v", c.at, w, c.want)
		}
	}
}

// TestTimelineFull adds more changes than a timeline keeps. The newest change counts in its
// time. Before that, the part is never more than the part of any change.
func TestTimelineFull(t *testing.T) {
	var line Timeline
	line.Add(Change{Plan: alone(t, 100)})
	const many = 5 * maxChanges
	for k := range int64(many) {
		line.Add(Change{Plan: alone(t, 1000-k), From: headgate.Instant(1+k) * second, Settled: many * second, Revision: k})
	}
	if n := len(line.changes); n != maxChanges {
		t.Fatalf("%d changes are kept, want %d", n, maxChanges)
	}
	for at := range headgate.Instant(many) {
		w, _ := line.At(at*second, at*second)
		want := int64(100) // nothing is settled
		if at >= maxChanges-2 {
			want = 0 // the merged change has begun
		}
		if w.Part != want {
			t.Fatalf("at %d s the part is %d, want %d", at, w.Part, want)
		}
	}
	if w, _ := line.At(many*second, many*second); w.Part != 1000-many+1 || len(line.changes) != 1 {
		t.Errorf("in the end there are %d changes and the window %+v, want the newest change only", len(line.changes), w)
	}
	// Repeated changes for one edge do not accumulate.
	for k := range int64(many) {
		line.Add(Change{Plan: alone(t, 1+k%2), From: headgate.Instant(many+k/9) * second})
	}
	if n := len(line.changes); n > many/9+3 {
		t.Errorf("after repeated changes, %d are kept, want at most %d", n, many/9+3)
	}
}

// TestTimelineCorrected replaces a plan that has begun. The new plan has begun too, even if
// the clock was set back.
func TestTimelineCorrected(t *testing.T) {
	var line Timeline
	line.Add(Change{Plan: alone(t, 10), From: 3 * second})
	line.At(3*second, 3*second)
	line.Add(Change{Plan: alone(t, 20), From: 3 * second})
	if w, ok := line.At(1*second, 4*second); !ok || w.Part != 20 || w.Number != 1 || w.Revised != math.MaxInt64 {
		t.Errorf("got the window %+v, want part 20 in window 1", w)
	}
}

// TestTimelineLast checks Last, and an empty timeline.
func TestTimelineLast(t *testing.T) {
	var line Timeline
	if _, ok := line.Last(); ok {
		t.Error("Last returns a change of an empty timeline")
	}
	if w, ok := line.At(5, 5); ok || w.Revised != math.MaxInt64 {
		t.Errorf("At of an empty timeline returns %+v and %v", w, ok)
	}
	if _, _, _, ok := line.After(0, 1); ok {
		t.Error("After finds units in an empty timeline")
	}
	line.Add(Change{Plan: alone(t, 10), Revision: 7})
	line.Add(Change{Plan: alone(t, 20), From: 9 * second, Revision: 8})
	line.Add(Change{Plan: alone(t, 20), From: 9 * second, Revision: 9})
	if c, ok := line.Last(); !ok || c.Limit != 20 || c.Revision != 9 || len(line.changes) != 2 {
		t.Errorf("Last returns %+v, want limit 20 and revision 9", c)
	}
}

// effective returns the part of the newest plan that has begun at a window's start. It
// searches all changes that were added. All windows have the same length.
func effective(added []Change, at headgate.Instant) int64 {
	for _, c := range slices.Backward(added) {
		if c.From <= at {
			return c.Part(c.Window(at))
		}
	}
	return 0
}

// TestTimelineAfter compares After with counting window by window. It also checks that no
// unit comes earlier than After says.
func TestTimelineAfter(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	for range inputs() / 10 {
		var line Timeline
		var added []Change
		for rev := range 1 + r.Int64N(5) {
			n := 1 + r.IntN(4)
			plan := fleet(t, r.Int64N(8), n)[r.IntN(n)]
			c := Change{Plan: plan, From: headgate.Instant(r.Int64N(12)) * second, Revision: rev}
			if r.IntN(2) == 0 {
				c.Settled = headgate.Instant(r.Int64N(15)) * second
			}
			added = append(added, c)
			line.Add(c)
		}
		now := headgate.Instant(r.Int64N(6))
		line.At(now*second, now*second)
		from, need := now+headgate.Instant(r.Int64N(9)), 1+r.Int64N(12)
		start, before, _, ok := line.After(from*second, need)
		at, units := from, int64(0)
		for ; at < from+4000 && units+effective(added, at*second) < need; at++ {
			units += effective(added, at*second)
		}
		if ok != (at < from+4000) || ok && (start != at*second || before != units) {
			t.Fatalf("changes %+v: After puts %d units since %d at %v, with %d before, %v; want %d, with %d before", added, need, from, start.Time(), before, ok, at, units)
		}
		had := int64(0)
		for at := from; at < from+30; at++ {
			w, _ := line.At(at*second, at*second)
			if had += w.Part; had >= need && (!ok || at*second < start) {
				t.Fatalf("changes %+v: %d units since %d have come at %d, before %v", added, need, from, at, start.Time())
			}
		}
	}
}

// TestTimelineAfterLengths has a change to another length that cuts a window off. After
// still counts all units of that window.
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
			t.Errorf("After puts %d units at %v, with %d before, want %d, with %d before", c.need, start.Time(), had, c.start, c.had)
		}
	}
}
