package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// This file tries what the package's comment proves of changes: random instances learn
// of random plans at random times, and what they have in a window is added up.

// world is a fleet and all that happens to it.
type world struct {
	random    *rand.Rand
	instances []*instance
	changes   []division
	latest    headgate.Instant // when the last thing happens
	rule      bool             // nobody takes a change to be settled before all know it
}

// division is a change, as the plans of all instances; who has none of it has a plan of nothing.
type division struct {
	limit   int64
	per     time.Duration
	plans   []Plan
	from    headgate.Instant
	known   []headgate.Instant // when each instance learns of it, by the true time
	settled []headgate.Instant // and when each takes it to be settled
}

type instance struct {
	timeline Timeline
	ahead    headgate.Instant // of its wall clock
	uptime   headgate.Instant // its monotonic clock, at the true time 0
	told     int              // changes that it knows, or is too young for
	had      map[cell]*answer
}

// cell is a window of some length.
type cell struct {
	per    time.Duration
	number int64
}

// answer is the most that an instance had in a window, and the newest revision that it had it by.
type answer struct{ part, base int64 }

const (
	grid   = headgate.Instant(100 * time.Millisecond)
	apart  = 3 * grid / 2 // by which clocks differ at most
	spread = 150          // true times are up to so many steps of the grid
)

func (w *world) instant(steps int64) headgate.Instant {
	return headgate.Instant(w.random.Int64N(steps*10)) * grid / 10
}

// newWorld draws a fleet.
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
			in.told = r.IntN(len(w.changes)) // It joins, and hears nothing of older ones.
		}
	}
	for _, d := range w.changes {
		w.latest = max(w.latest, slices.Max(d.settled), d.from)
	}
	return w
}

// draw draws a change that each instance learns of at or after the one before.
func (w *world) draw(before []headgate.Instant) division {
	r, n := w.random, len(w.instances)
	d := division{limit: 30*int64(len(w.changes)%2) + r.Int64N(30), per: time.Second, plans: make([]Plan, n)}
	if r.IntN(8) == 0 {
		d.per = 1500 * time.Millisecond
	}
	members := r.Perm(n)[:1+r.IntN(n)]
	units := drawUnits(r, d.limit, len(members))
	uneven := r.IntN(2) == 0
	for i := range d.plans {
		d.plans[i] = Plan{Per: d.per, Instances: 1000 + len(w.changes)} // Unlike that of any other change.
	}
	for index, i := range members {
		plan, err := Even(d.limit, d.per, len(members), index)
		if uneven {
			plan, err = Uneven(d.limit, d.per, units, index)
		}
		if err != nil {
			panic(err)
		}
		d.plans[i] = plan
	}
	if len(w.changes) > 0 && r.IntN(5) == 0 {
		again := w.changes[len(w.changes)-1] // The same for other times.
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
			settled = d.known[i] // It does not wait for the others.
		}
		d.settled = append(d.settled, settled)
	}
	return d
}

// pass lets all of it happen in the order of time, with questions at random moments.
func (w *world) pass() {
	for at := headgate.Instant(0); at <= w.latest+4*second; at += w.instant(4) {
		for i, in := range w.instances {
			for in.told < len(w.changes) && w.changes[in.told].known[i] <= at {
				d := &w.changes[in.told]
				in.timeline.Add(Change{Plan: d.plans[i], From: d.from, Settled: d.settled[i] + in.uptime, Revision: int64(in.told)})
				in.told++
			}
			if w.random.IntN(3) > 0 {
				in.ask(at)
			}
		}
	}
	for _, in := range w.instances { // Once more, long after all is settled.
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

// excess gives by how much parts exceed the limit of the newest change that somebody had
// them by, in the worst window of all; once of everybody, and once of those who knew that
// change when the window began. When all is settled, all of the limit is to be used.
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
		t.Errorf("when all is settled, %d of %d units are used", sums[c], last.limit)
	}
	return ofAll, ofThoseWhoKnew
}

// oneLength holds that once windows of another length have begun to be used, none of the old
// length begin.
func (w *world) oneLength(t *testing.T, bases map[cell]int64) {
	t.Helper()
	for c, base := range bases {
		for other, newer := range bases {
			if c.per != other.per && base < newer && c.number*int64(c.per) >= other.number*int64(other.per) && w.rule {
				t.Errorf("windows of %v are used beside those of %v", c.per, other.per)
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

// TestFleet: while every instance knows a plan before it is settled for anybody, the
// parts of a window never add up to more than the limit of one of the plans, however
// late who learns of them, in whatever order they begin, and with clocks that differ.
func TestFleet(t *testing.T) {
	for seed := range uint64(inputs() / 5) {
		w := newWorld(seed, true)
		w.pass()
		if over, _ := w.excess(t); over > 0 {
			t.Fatalf("fleet %d: %d units too many", seed, over)
		}
		if t.Failed() {
			t.Fatalf("fleet %d", seed)
		}
	}
}

// TestFleetBreaksTheRule: the rule is what it takes. Where somebody does not wait for the
// others there are fleets with too many units, and never more of them than those have
// who did not know.
func TestFleetBreaksTheRule(t *testing.T) {
	over := 0
	for seed := range uint64(inputs() / 5) {
		w := newWorld(seed, false)
		w.pass()
		ofAll, ofThoseWhoKnew := w.excess(t)
		if ofThoseWhoKnew > 0 || t.Failed() {
			t.Fatalf("fleet %d: those who knew have %d units too many", seed, ofThoseWhoKnew)
		}
		if ofAll > 0 {
			over++
		}
	}
	if over < inputs()/5/50 {
		t.Errorf("%d of %d fleets had too many units: the rule does not matter here", over, inputs()/5)
	}
	t.Logf("%d of %d fleets had too many units", over, inputs()/5)
}
