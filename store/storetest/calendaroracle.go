package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // The machine may have no tables of time zones.

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/calendar"
	"github.com/headgate/headgate/limit"
)

// testCalendarChanges changes the settings of calendars while units are used.
func (s *suite) testCalendarChanges(t *testing.T) {
	if s.without[headgate.FixedWindow] {
		return
	}
	t.Run("units of both windows", func(t *testing.T) { unitsOfBothWindows(s.bench(t)) })
	t.Run("a count without times", func(t *testing.T) { countWithoutTimes(s.bench(t)) })
	for seed := range uint64(max(s.rounds/20, 8)) {
		t.Run(fmt.Sprintf("oracle %d", seed), func(t *testing.T) {
			o := newOracle(s.bench(t), seed)
			for range 150 {
				o.step()
			}
			if o.admitted == 0 || o.refused == 0 {
				t.Errorf("%d requests admitted and %d refused, so the test checks nothing", o.admitted, o.refused)
			}
		})
	}
}

// until moves the clock to an hour of a day of 2026.
func (b *bench) until(month time.Month, day, hour int) {
	b.clock.Advance(time.Date(2026, month, day, hour, 0, 0, 0, time.UTC).Sub(b.clock.Now().Time()))
}

// unitsOfBothWindows uses units in a month, whose first day then changes to a day of the past. The
// units are in both months.
func unitsOfBothWindows(b *bench) {
	id, first, late := b.prepare(calendarLimit(3, headgate.Month)), calendar.Default(), calendar.Default()
	late.MonthStarts = 29
	op := headgate.Op{Key: "k", Policy: id, Cost: 1}
	take := func(what string, s calendar.Settings, cost int64, verdict headgate.Verdict, left int64, carried bool) {
		b.t.Helper()
		op.Cost, op.Edges = cost, b.edgesOf(s, headgate.Month, 0)
		d := b.apply(op)[0]
		b.wantDecision(what, d, verdict, left, op.Edges[2])
		if d.Carried != carried {
			b.t.Errorf("%s: Carried is %v", what, d.Carried)
		}
	}
	b.until(time.November, 29, 10)
	take("3 units", first, 3, headgate.Allow, 0, false)
	b.until(time.November, 29, 11)
	take("a fourth, in the other month", late, 1, headgate.Deny, 0, true)
	b.until(time.December, 20, 0) // A count of one month would have expired.
	take("three weeks later", late, 1, headgate.Deny, 0, true)
	b.until(time.December, 29, 0)
	take("in the next month", late, 1, headgate.Allow, 2, false)
}

// countWithoutTimes: one unit of a count is in the new window, and the others are not. A count
// does not know the times, so all its units count until the window ends.
func countWithoutTimes(b *bench) {
	id, first, late := b.prepare(calendarLimit(5, headgate.Week)), calendar.Default(), calendar.Default()
	late.WeekStarts = time.Sunday
	op := headgate.Op{Key: "k", Policy: id, Cost: 4}
	b.until(time.November, 23, 10) // A Monday.
	op.Edges = b.edgesOf(first, headgate.Week, 0)
	b.apply(op)
	b.until(time.November, 29, 10)
	op.Cost, op.Edges = 1, b.edgesOf(first, headgate.Week, 0)
	b.apply(op)
	op.Edges = b.edgesOf(late, headgate.Week, 0)
	d := b.apply(op)[0]
	b.wantDecision("all 5 units may be of Sunday", d, headgate.Deny, 0, op.Edges[2])
	if !d.Carried {
		b.t.Error("the decision does not say that the count began before the window")
	}
	b.clock.Advance(op.Edges[2].Sub(b.clock.Now()))
	op.Edges = b.edgesOf(late, headgate.Week, 0)
	b.wantDecision("the next week", b.apply(op)[0], headgate.Allow, 4, op.Edges[2])
}

// usedUnits are units that were admitted at one time, in the window of the settings in force.
type usedUnits struct {
	at, start headgate.Instant
	units     int64
}

// oracle knows the time of every unit of a key whose settings change.
type oracle struct {
	*bench

	r        *rand.Rand
	unit     headgate.CalendarUnit
	count    int64
	id       headgate.PolicyID
	settings calendar.Settings
	used     []usedUnits
	starts   []headgate.Instant // The starts of all windows in force so far.
	changed  bool
	admitted int
	refused  int
}

func newOracle(b *bench, seed uint64) *oracle {
	o := &oracle{bench: b, r: rand.New(rand.NewPCG(seed, 25)), unit: headgate.Day + headgate.CalendarUnit(seed%4)}
	o.count = 3 + o.r.Int64N(10)
	o.id, o.settings = b.prepare(calendarLimit(o.count, o.unit)), o.draw()
	return o
}

// draw gives random settings.
func (o *oracle) draw() calendar.Settings {
	o.t.Helper()
	names := []string{"UTC", "Europe/London", "Asia/Tokyo", "America/Santiago", "Pacific/Niue", "Pacific/Kiritimati", "Asia/Kathmandu"}
	zone, err := time.LoadLocation(names[o.r.IntN(len(names))])
	if err != nil {
		o.t.Fatal(err)
	}
	return calendar.Settings{Zone: zone, WeekStarts: time.Weekday(o.r.IntN(7)), MonthStarts: 1 + o.r.IntN(31)}
}

// step takes units, and now and then changes the settings.
func (o *oracle) step() {
	o.t.Helper()
	most := limit.Spread(o.unit) / 3
	if o.r.IntN(3) == 0 {
		most = 10 * time.Minute
	}
	o.clock.Advance(time.Duration(o.r.Int64N(int64(most))).Truncate(time.Microsecond))
	if o.r.IntN(12) == 0 {
		o.settings, o.changed = o.draw(), true
	}
	cost := 1 + o.r.Int64N(3)
	e := o.edgesOf(o.settings, o.unit, 0)
	d := o.apply(headgate.Op{Key: "k", Policy: o.id, Cost: cost, Edges: e})[0]
	start := e[1]
	if !slices.Contains(o.starts, start) {
		o.starts = append(o.starts, start)
	}
	before := o.count - d.Remaining
	if d.Verdict == headgate.Allow {
		before -= cost
	}
	within, possible := o.since(start), o.since(o.earliest(start))
	if before > possible {
		o.failf("%d units count, and at most %d cannot be excluded", before, possible)
	}
	if before > within && !d.Carried {
		o.failf("%d units count, %d are in the window, and the decision does not say so", before, within)
	}
	if !o.changed && before != within {
		o.failf("%d units count, and %d are in the window", before, within)
	}
	if d.Verdict != headgate.Allow {
		o.refused++
		return
	}
	o.admitted++
	o.used = append(o.used, usedUnits{o.clock.Now(), start, cost})
	if sum := o.since(start); sum > o.count*int64(1+o.begunSince(start)) {
		o.failf("%d units of %d are in the window", sum, o.count)
	}
}

func (o *oracle) failf(format string, args ...any) {
	o.t.Helper()
	o.t.Fatalf("%s at %s under %+v: "+format, append([]any{o.unit, o.clock.Now().Time(), o.settings}, args...)...)
}

// since gives the units that were used from a time on.
func (o *oracle) since(from headgate.Instant) int64 {
	sum := int64(0)
	for _, u := range o.used {
		if u.at >= from {
			sum += u.units
		}
	}
	return sum
}

// begunSince counts the windows of other settings that have begun in the window from start.
// Settings whose window began before may come back: their count has ended with it.
func (o *oracle) begunSince(start headgate.Instant) int {
	n := 0
	for _, s := range o.starts {
		if s > start {
			n++
		}
	}
	return n
}

// earliest gives the time from which units cannot be excluded from the window from start: those
// of each count that a unit since that time was counted in, and those of a count that began at
// most a Spread before.
func (o *oracle) earliest(start headgate.Instant) headgate.Instant {
	for {
		first := start
		for _, u := range o.used {
			if u.at >= start || start.Sub(u.start) <= limit.Spread(o.unit) {
				first = min(first, u.start)
			}
		}
		if first == start {
			return start
		}
		start = first
	}
}
