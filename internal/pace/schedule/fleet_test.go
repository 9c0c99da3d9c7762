package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// This file tests the proof in the package comment. Random instances learn random plans at
// random times, and the tests add up the parts of each window.

// world is a fleet and its changes.
type world struct {
	random    *rand.Rand
	instances []*instance
	changes   []division
	latest    headgate.Instant // time of the last event
	rule      bool             // no instance treats a change as settled before all know it
}

// division is a change with the plans of all instances. An instance without a part has a plan with limit 0.
type division struct {
	limit   int64
	per     time.Duration
	plans   []Plan
	from    headgate.Instant
	known   []headgate.Instant // true time at which each instance learns the change
	settled []headgate.Instant // true time at which it is settled for each instance
}

type instance struct {
	timeline Timeline
	ahead    headgate.Instant // error of its wall clock
	uptime   headgate.Instant // its monotonic clock at true time 0
	known    int              // number of changes that it knows or that are older than it
	had      map[cell]*answer
}

// cell identifies a window by its length and number.
type cell struct {
	per    time.Duration
	number int64
}

// answer is an instance's largest part in a window, and the newest revision that gave a part.
type answer struct{ part, base int64 }

const (
	grid   = headgate.Instant(100 * time.Millisecond)
	apart  = 3 * grid / 2 // maximum difference between clocks
	spread = 150          // maximum true time in steps of the grid
)

func (w *world) instant(steps int64) headgate.Instant {
	return headgate.Instant(w.random.Int64N(steps*10)) * grid / 10
}

// newWorld draws a random fleet.
func newWorld(seed uint64, rule bool) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 7)), rule: rule}
	r := w.random
	for range 1 + r.IntN(5) {
		w.instances = append(w.instances, &instance{
			ahead: headgate.Instant(r.Int64N(int64(apart))), uptime: 1 + w.instant(1000), had: map[cell]*answer{},
		})
	}
	before := make([]headgate.Instant, len(w.instances))
	for range 1 + r.IntN(5) {
		w.changes = append(w.changes, w.draw(before))
	}
	for _, in := range w.instances {
		if r.IntN(3) == 0 {
			in.known = r.IntN(len(w.changes)) // It joins late and does not learn older changes.
		}
	}
	for _, d := range w.changes {
		w.latest = max(w.latest, slices.Max(d.settled), d.from)
	}
	return w
}

// draw draws a random change. Each instance learns it no sooner than the change before.
func (w *world) draw(before []headgate.Instant) division {
	r, n := w.random, len(w.instances)
	d := division{limit: 30*int64(len(w.changes)%2) + r.Int64N(30), per: time.Second, plans: make([]Plan, n)}
	if r.IntN(8) == 0 {
		d.per = 1500 * time.Millisecond
	}
	members := r.Perm(n)[:1+r.IntN(n)]
	for i := range d.plans {
		d.plans[i] = Plan{Per: d.per, Instances: 1000 + len(w.changes)} // This differs from the plans of other changes.
	}
	for index, i := range members {
		plan, err := Even(d.limit, d.per, len(members), index)
		if err != nil {
			panic(err)
		}
		d.plans[i] = plan
	}
	if len(w.changes) > 0 && r.IntN(5) == 0 {
		again := w.changes[len(w.changes)-1] // the same plans at other times
		d.limit, d.per, d.plans = again.limit, again.per, again.plans
	}
	d.from = headgate.Instant(1+r.Int64N(8)) * 3 * second / 2
	d.from -= d.from % headgate.Instant(d.per)
	for i := range w.instances {
		d.known = append(d.known, before[i]+w.instant(1+r.Int64N(spread)/3))
		before[i] = d.known[i]
	}
	all := slices.Max(d.known) + apart
	for i := range w.instances {
		settled := all + w.instant(1+r.Int64N(spread)/3)
		if !w.rule && r.IntN(2) == 0 {
			settled = d.known[i] // This breaks the rule.
		}
		d.settled = append(d.settled, settled)
	}
	return d
}

// pass runs all events in order of time, and queries the parts at random times.
func (w *world) pass() {
	for at := headgate.Instant(0); at <= w.latest+4*second; at += w.instant(4) {
		for i, in := range w.instances {
			for in.known < len(w.changes) && w.changes[in.known].known[i] <= at {
				d := &w.changes[in.known]
				in.timeline.Add(Change{Plan: d.plans[i], From: d.from, Settled: d.settled[i] + in.uptime, Revision: int64(in.known)})
				in.known++
			}
			if w.random.IntN(3) > 0 {
				in.ask(at)
			}
		}
	}
	for _, in := range w.instances { // Query once more, long after all changes are settled.
		in.ask(w.latest + 50*second)
	}
}

func (in *instance) ask(at headgate.Instant) {
	window, ok := in.timeline.At(at+in.ahead, at+in.uptime)
	if !ok {
		return
	}
	if window.Part == 0 {
		return
	}
	c := cell{window.Plan.Per, window.Number}
	a := in.had[c]
	if a == nil {
		a = &answer{}
		in.had[c] = a
	}
	a.part, a.base = max(a.part, window.Part), max(a.base, window.Revision)
}

// excess returns the largest excess of any window: the sum of the parts above the limit of
// the newest change that gave a part. ofAll counts all instances. ofThoseWhoKnew counts the
// instances that knew this change when the window began. excess also checks that the whole
// limit is used when all changes are settled.
func (w *world) excess(t *testing.T) (ofAll, ofThoseWhoKnew int64) {
	t.Helper()
	sums, bases := map[cell]int64{}, map[cell]int64{}
	for _, in := range w.instances {
		for c, a := range in.had {
			sums[c] += a.part
			bases[c] = max(bases[c], a.base)
		}
	}
	for c, sum := range sums {
		base := &w.changes[bases[c]]
		ofAll = max(ofAll, sum-base.limit)
		start := headgate.Instant(c.per) * headgate.Instant(c.number)
		for i, in := range w.instances {
			if a := in.had[c]; a != nil && base.known[i] > start-in.ahead {
				sum -= a.part
			}
		}
		ofThoseWhoKnew = max(ofThoseWhoKnew, sum-base.limit)
	}
	w.oneLength(t, bases)
	last := &w.changes[len(w.changes)-1]
	c := cell{last.per, last.plans[0].Window(w.latest + 50*second)}
	per := headgate.Instant(last.per)
	if sums[c] != last.limit && slices.Max(w.aheads()) < per-(w.latest+50*second)%per {
		t.Errorf("when all changes are settled, %d of %d units are used", sums[c], last.limit)
	}
	return ofAll, ofThoseWhoKnew
}

// oneLength checks that no window of the old length begins once an instance uses windows of
// another length.
func (w *world) oneLength(t *testing.T, bases map[cell]int64) {
	t.Helper()
	for c, base := range bases {
		for other, newer := range bases {
			if c.per != other.per && base < newer && c.number*int64(c.per) >= other.number*int64(other.per) && w.rule {
				t.Errorf("windows of %v are used together with newer windows of %v", c.per, other.per)
			}
		}
	}
}

func (w *world) aheads() (list []headgate.Instant) {
	for _, in := range w.instances {
		list = append(list, in.ahead)
	}
	return list
}

// TestFleet follows the rule: every instance knows a plan before it is settled for any
// instance. Then the parts of a window never add up to more than the limit of one of the
// plans. Delays, the order of beginnings and clock errors do not matter.
func TestFleet(t *testing.T) {
	for seed := range uint64(inputs() / 5) {
		w := newWorld(seed, true)
		w.pass()
		if over, _ := w.excess(t); over > 0 {
			t.Fatalf("fleet with seed %d: a window has %d units above the limit", seed, over)
		}
		if t.Failed() {
			t.Fatalf("the fleet with seed %d failed", seed)
		}
	}
}

// TestFleetBreaksTheRule checks that the rule is necessary. Some fleets exceed the limit if
// an instance does not wait for the others. The excess is at most the units of the instances
// that did not know the change.
func TestFleetBreaksTheRule(t *testing.T) {
	over := 0
	for seed := range uint64(inputs() / 5) {
		w := newWorld(seed, false)
		w.pass()
		ofAll, ofThoseWhoKnew := w.excess(t)
		if ofThoseWhoKnew > 0 || t.Failed() {
			t.Fatalf("fleet with seed %d: the instances that knew the change have %d units above the limit", seed, ofThoseWhoKnew)
		}
		if ofAll > 0 {
			over++
		}
	}
	if over < inputs()/5/50 {
		t.Errorf("only %d of %d fleets exceeded the limit: the test does not show that the rule is necessary", over, inputs()/5)
	}
	t.Logf("%d of %d fleets exceeded the limit", over, inputs()/5)
}
