package wheel

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	ms   = time.Millisecond
	day  = 24 * time.Hour
	year = 365 * day
)

// fired gives the names of the entries that a wheel yields at a time.
func fired(w *Wheel, names map[*Entry]string, now time.Duration) string {
	var all []string
	for e := range w.Advance(now) {
		all = append(all, names[e])
	}
	return strings.Join(all, " ")
}

// TestStories: entries are added, removed and yielded, step by step.
func TestStories(t *testing.T) {
	type step struct {
		add  string        // an entry to add at the time `at`
		stop string        // or an entry to remove
		at   time.Duration // or the time to advance to
		want string        // and the entries that are then yielded
	}
	add := func(name string, at time.Duration) step { return step{add: name, at: at} }
	stop := func(name string) step { return step{stop: name} }
	to := func(at time.Duration, want string) step { return step{at: at, want: want} }
	for story, steps := range map[string][]step{
		"at the origin":                     {add("a", 0), to(0, "a"), to(0, "")},
		"before the origin":                 {add("a", -time.Hour), to(0, "a")},
		"a nanosecond waits for its tick":   {add("a", 1), to(0, ""), to(ms-1, ""), to(ms, "a")},
		"one tick":                          {add("a", ms), to(ms-1, ""), to(ms, "a")},
		"a nanosecond more is another tick": {add("a", ms+1), to(2*ms-1, ""), to(2*ms, "a")},
		"a departure that has passed":       {to(day, ""), add("a", time.Hour), to(day, "a")},
		"a past departure counts as now":    {to(100*ms, ""), add("b", 50*ms), add("a", 40*ms), add("c", 101*ms), to(101*ms, "b a c")},
		"the time does not step back":       {add("a", 10*ms), to(9*ms, ""), to(3*ms, ""), to(10*ms, "a"), add("b", 8*ms), to(0, "b")},
		"the order follows the ticks":       {add("c", 3*ms), add("a", 1*ms), add("b", 2*ms), to(5*ms, "a b c")},
		"in one tick who comes first":       {add("b", 2*ms), add("a", 2*ms-1), add("c", ms+1), to(2*ms, "b a c")},
		"first from afar, then from near":   {add("a", 70*ms), to(10*ms, ""), add("b", 70*ms), to(65*ms, ""), add("c", 70*ms), to(70*ms, "a b c")},
		"added again goes to the end":       {add("a", 2*ms), add("b", 2*ms), add("a", 2*ms), to(2*ms, "b a")},
		"added again to another time":       {add("a", day), add("a", 2*ms), to(2*ms, "a"), to(2*day, "")},
		"removed":                           {add("a", 2*ms), add("b", 2*ms), stop("a"), to(2*ms, "b")},
		"removed at the edge of its level":  {add("a", 64*ms), add("b", 65*ms), to(63*ms, ""), stop("a"), to(65*ms, "b")},
		"the last digit of a level":         {add("a", 63*ms), to(62*ms, ""), to(63*ms, "a")},
		"the first of the next level":       {add("a", 64*ms), to(63*ms, ""), to(64*ms, "a")},
		"the second of the next level":      {add("a", 65*ms), to(64*ms, ""), to(65*ms, "a")},
		"the last of two levels":            {add("a", 4095*ms), to(4094*ms, ""), to(4095*ms, "a")},
		"the first of the third level":      {add("a", 4096*ms), to(4095*ms, ""), to(4096*ms, "a")},
		"neighbours on three levels":        {add("c", 4096*ms), add("b", 4095*ms), add("a", 63*ms), to(4095*ms, "a b"), to(4096*ms, "c")},
		"a day":                             {add("a", day), to(day-1, ""), to(day, "a")},
		"a year":                            {add("a", year+1), to(year, ""), to(year+ms-1, ""), to(year+ms, "a")},
		"a year in one leap":                {add("b", year), add("a", 65*ms), to(2*year, "a b")},
		"the end of time":                   {add("a", math.MaxInt64), to(math.MaxInt64-1, ""), to(math.MaxInt64, "a")},
	} {
		t.Run(story, func(t *testing.T) {
			var w Wheel
			names, entries := map[*Entry]string{}, map[string]*Entry{}
			for i, s := range steps {
				switch {
				case s.add != "":
					if entries[s.add] == nil {
						entries[s.add] = &Entry{}
						names[entries[s.add]] = s.add
					}
					w.Add(entries[s.add], s.at)
				case s.stop != "":
					if !w.Remove(entries[s.stop]) || w.Remove(entries[s.stop]) {
						t.Errorf("step %d: %s is not removed once", i, s.stop)
					}
				default:
					if got := fired(&w, names, s.at); got != s.want {
						t.Errorf("step %d: at %v %q is yielded, want %q", i, s.at, got, s.want)
					}
				}
			}
			if w.Len() != 0 {
				t.Errorf("%d entries are left", w.Len())
			}
		})
	}
}

// TestNext: Next gives the time of the next Advance. An entry that is far ahead needs a call
// when half of the ring's four seconds are left, and moves down at least one level each time.
func TestNext(t *testing.T) {
	var empty Wheel
	if at, ok := empty.Next(); ok {
		t.Errorf("an empty wheel has something to do at %v", at)
	}
	var e Entry
	empty.Add(&e, 5*ms)
	if at, ok := empty.Next(); at != 0 || !ok {
		t.Errorf("a wheel that was never advanced is not asked for at once, but at %v", at)
	}
	for _, c := range []struct {
		departs time.Duration
		want    []time.Duration
	}{
		{0, []time.Duration{0}},
		{1, []time.Duration{ms}},
		{4095 * ms, []time.Duration{4095 * ms}},
		{4096 * ms, []time.Duration{(4096 - slack) * ms, 4096 * ms}},
		// At 2048, all entries up to 2048 + 4095 move into the ring at once.
		{6143 * ms, []time.Duration{(4096 - slack) * ms, 6143 * ms}},
		{6144 * ms, []time.Duration{(4096 - slack) * ms, (6144 - slack) * ms, 6144 * ms}},
		// 3,600,000 ticks are 13, 46, 58 and 0 in base 64.
		{time.Hour, []time.Duration{(13<<18 - slack) * ms, (13<<18 + 46<<12 - slack) * ms, time.Hour - slack*ms, time.Hour}},
	} {
		if got := walk(t, c.departs); !slices.Equal(got, c.want) {
			t.Errorf("departure at %v: Next gives %v, want %v", c.departs, got, c.want)
		}
	}
	if got := walk(t, never); len(got) > levelCount+1 || got[len(got)-1] != never {
		t.Errorf("the end of time: %v", got)
	}
}

// walk advances from Next to Next until an entry has departed.
func walk(t *testing.T, departs time.Duration) (all []time.Duration) {
	t.Helper()
	var w Wheel
	var e Entry
	w.Pop(0)
	w.Add(&e, departs)
	for at, ok := w.Next(); ok; at, ok = w.Next() {
		all = append(all, at)
		if w.Pop(at) != nil && at != timeOf(tickAfter(departs)) {
			t.Errorf("the departure of %v is at %v", departs, at)
		}
	}
	return all
}

// TestLoopChangesTheWheel: a loop over Advance may add and remove entries.
func TestLoopChangesTheWheel(t *testing.T) {
	var w Wheel
	var a, b, c, d Entry
	names := map[*Entry]string{&a: "a", &b: "b", &c: "c", &d: "d"}
	w.Add(&a, ms)
	w.Add(&b, ms)
	w.Add(&c, 70*ms)
	var got []string
	for e := range w.Advance(80 * ms) {
		got = append(got, names[e])
		switch {
		case e == &a && len(got) == 1:
			if w.Remove(&a) {
				t.Error("what was yielded can be removed")
			}
			w.Remove(&b)       // an entry of the same tick is not yielded
			w.Add(&d, 75*ms)   // a due entry is yielded by the same loop
			w.Add(&a, 80*ms+1) // an entry that is not due is not yielded again
		case e == &c:
			w.Add(&b, 0) // a past departure is yielded next
		}
	}
	if want := []string{"a", "c", "b", "d"}; !slices.Equal(got, want) {
		t.Errorf("%q were yielded, want %q", got, want)
	}
	for range w.Advance(day) {
		break
	}
	if w.Len() != 0 {
		t.Errorf("%d are left, want none", w.Len())
	}
}

// TestLoopEndsEarly: after an early end of a loop, the next loop yields the remaining entries.
func TestLoopEndsEarly(t *testing.T) {
	var w Wheel
	entries := make([]Entry, 5)
	for i := range entries {
		w.Add(&entries[i], 100*ms)
	}
	for i := range entries {
		for e := range w.Advance(time.Second) {
			if e != &entries[i] {
				t.Errorf("loop %d begins with another entry", i)
			}
			break
		}
	}
}

// TestTwoWheels: Remove has no effect in a wheel without the entry. Add to another wheel moves
// the entry.
func TestTwoWheels(t *testing.T) {
	var one, other Wheel
	var e Entry
	one.Add(&e, ms)
	if other.Remove(&e) {
		t.Error("an entry is removed from a wheel that it is not in")
	}
	other.Add(&e, ms)
	if one.Len() != 0 || other.Len() != 1 || one.Remove(&e) || !other.Remove(&e) {
		t.Errorf("moved to another wheel: %d in the first, %d in the second", one.Len(), other.Len())
	}
}

// TestManyMoveInPieces: a slot has more entries than one batch, so Timers releases its lock in
// between. Due entries go first, and all entries come in order.
func TestManyMoveInPieces(t *testing.T) {
	var w Wheel
	var near Entry
	entries := make([]Entry, 3*batch+7)
	for i := range entries {
		w.Add(&entries[i], 9*time.Second)
	}
	w.Add(&near, 6*time.Second)
	w.Pop(3 * time.Second)
	until := tickAt(6*time.Second - ms)
	for piece := range 3 {
		if e, more := w.step(until, batch); e != nil || !more || w.far.moving == 0 {
			t.Fatalf("piece %d: %v is yielded, and more is %v", piece, e, more)
		}
	}
	until++
	if e, more := w.step(until, batch); e != &near || !more {
		t.Errorf("%v is yielded, want the one that is due", e)
	}
	if w.far.moving == 0 {
		t.Error("all have moved, and nothing was due between")
	}
	if at, ok := w.Next(); at != 6*time.Second || !ok {
		t.Errorf("half moved, the wheel is asked for at %v, want at once", at)
	}
	if e := w.Pop(timeOf(until)); e != nil {
		t.Errorf("%v is yielded, before its time", e)
	}
	for i := range entries {
		if e := w.Pop(9 * time.Second); e != &entries[i] {
			t.Fatalf("entry %d is not the one that was added as such", i)
		}
	}
}

// TestChangesWhileEntriesMove: between two batches, other calls add, remove and advance. The
// order stays correct.
func TestChangesWhileEntriesMove(t *testing.T) {
	g := &game{reporter: t, now: 8000 * ms}
	late, early, added, gone, again := &g.entries[0], &g.entries[1], &g.entries[2], &g.entries[3], &g.entries[4]
	g.add(late, 8100*ms)
	g.add(gone, 7000*ms)
	g.add(early, 7000*ms)
	g.piece(1) // moves the late entry
	g.wheel.skip(8000)
	g.audit()
	g.add(added, 7000*ms) // behind the early entry, which has not moved
	g.add(again, 4096*ms) // the same tick as the moving slot
	g.remove(gone)        // this entry would have moved next
	for range 3 {
		g.piece(1)
		g.audit()
	}
	g.remove(again)
	g.add(again, 7000*ms) // the slot was empty in between, and is still the moving slot
	for range 20 {
		g.piece(1)
		g.audit()
	}
	if g.wheel.now != 8000 || g.wheel.Len() != 1 || !g.wheel.Remove(late) {
		t.Errorf("at tick %d, %d are left, want the late one", g.wheel.now, g.wheel.Len())
	}
}

// TestWheelAllocatesNothing: Add, Remove and a whole loop allocate nothing.
func TestWheelAllocatesNothing(t *testing.T) {
	var w Wheel
	var a, b Entry
	now, seen := time.Duration(0), 0
	if n := testing.AllocsPerRun(100, func() {
		w.Add(&a, now+5*time.Second)
		w.Add(&b, now+day)
		w.Remove(&b)
		now += 6 * time.Second
		for range w.Advance(now) {
			seen++
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if seen != 101 {
		t.Errorf("%d entries were yielded, want 101", seen)
	}
}

// TestDepartureTimes: the rounding of times in a Timers, and its last time.
func TestDepartureTimes(t *testing.T) {
	for _, c := range []struct{ now, d, want time.Duration }{
		{10*ms + 5, 0, 10 * ms},
		{10*ms + 5, -day, 10 * ms},
		{10*ms + 5, 1, 10*ms + 6},
		{10, never, never},
		{10, never - 10, never},
		{10, never - 11, never - 1},
	} {
		if got := departure(c.now, c.d); got != c.want {
			t.Errorf("%v after %v is %v, want %v", c.d, c.now, got, c.want)
		}
	}
	for tick, want := range map[int64]time.Duration{0: 0, 1: ms, tickAt(never): never, tickAt(never) - 1: never.Truncate(ms)} {
		if got := timeOf(tick); got != want {
			t.Errorf("tick %d is at %v, want %v", tick, got, want)
		}
	}
}
