package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // The machine may have no tables of time zones.

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/limit/twin"
)

// testCalendarChanges changes the settings of calendars while units are used.
func (s *suite) testCalendarChanges(t *testing.T) {
	if s.without[headgate.FixedWindow] {
		return
	}
	t.Run("units of both windows", func(t *testing.T) { unitsOfBothWindows(s.bench(t)) })
	t.Run("a count without times", func(t *testing.T) { countWithoutTimes(s.bench(t)) })
	carried := 0
	for seed := range uint64(max(s.rounds/20, 8)) {
		t.Run(fmt.Sprintf("oracle %d", seed), func(t *testing.T) {
			o := newOracle(s.bench(t), seed)
			for range 150 {
				o.step()
			}
			if o.admitted == 0 || o.refused == 0 {
				t.Errorf("%d requests admitted and %d refused, so the test checks nothing", o.admitted, o.refused)
			}
			carried += o.carried
		})
	}
	if carried == 0 {
		t.Error("no decision carried units, so the test does not check which ones")
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

// usedUnits are units that were admitted at one time, in a window from start.
type usedUnits struct {
	at, start headgate.Instant
	units     int64
}

// oracle knows the time of every unit of a key whose settings change. Its twin has the counts that a
// store keeps, so it says which units cannot be excluded.
type oracle struct {
	*bench

	r        *rand.Rand
	unit     headgate.CalendarUnit
	count    int64
	id       headgate.PolicyID
	settings []calendar.Settings // Of instances that take units in turns.
	used     []usedUnits
	newest   headgate.Instant
	twin     *twin.Calendar
	receipts []headgate.Receipt // Not yet returned, the oldest first.
	changed  bool
	admitted int
	refused  int
	carried  int
}

func newOracle(b *bench, seed uint64) *oracle {
	o := &oracle{bench: b, r: rand.New(rand.NewPCG(seed, 25)), unit: headgate.Day + headgate.CalendarUnit(seed%4)}
	o.count = 3 + o.r.Int64N(10)
	p := calendarLimit(o.count, o.unit)
	o.id, o.twin = b.prepare(p), twin.NewCalendar(p)
	o.settings = append(o.settings, o.draw())
	return o
}

// draw gives random settings, or settings that were in force before.
func (o *oracle) draw() calendar.Settings {
	o.t.Helper()
	names := []string{
		"UTC", "Europe/London", "Europe/Berlin", "Asia/Tokyo", "America/Santiago", "Pacific/Niue", "Pacific/Kiritimati",
		"Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Chatham",
	}
	zone, err := time.LoadLocation(names[o.r.IntN(len(names))])
	if err != nil {
		o.t.Fatal(err)
	}
	return calendar.Settings{Zone: zone, WeekStarts: time.Weekday(o.r.IntN(7)), MonthStarts: 1 + o.r.IntN(31)}
}

// change changes the settings of one of up to three instances, to others or back.
func (o *oracle) change() {
	o.t.Helper()
	o.changed = true
	switch n := len(o.settings); {
	case n > 1 && o.r.IntN(2) == 0: // Back: the last settings leave, or the first.
		at := o.r.IntN(2) * (n - 1)
		o.settings = slices.Delete(o.settings, at, at+1)
	case n < 3:
		o.settings = append(o.settings, o.draw())
	default:
		o.settings[o.r.IntN(n)] = o.draw()
	}
}

// step takes, refunds or returns units, and now and then changes the settings or the clock.
func (o *oracle) step() {
	o.t.Helper()
	most := limit.LongestWindow(o.unit) / 6
	if o.r.IntN(3) == 0 {
		most = 10 * time.Minute
	}
	o.clock.Advance(time.Duration(o.r.Int64N(int64(most))).Truncate(time.Microsecond) + time.Microsecond)
	if o.r.IntN(30) == 0 {
		o.clock.Advance(-time.Minute - time.Duration(o.r.Int64N(int64(most/4))).Truncate(time.Microsecond))
	}
	if o.r.IntN(12) == 0 {
		o.change()
	}
	e := o.edgesOf(o.settings[o.r.IntN(len(o.settings))], o.unit, 0)
	switch o.r.IntN(12) {
	case 0:
		o.refund(e)
	case 1:
		o.giveLastBack()
	default:
		o.take(e)
	}
}

// take takes units and checks the decision against the time of every unit.
func (o *oracle) take(e *headgate.Edges) {
	o.t.Helper()
	cost, now := 1+o.r.Int64N(3), o.clock.Now()
	d := o.apply(headgate.Op{Key: "k", Policy: o.id, Cost: cost, Edges: e})[0]
	want := o.twin.Do(e, now, cost, headgate.Take)
	if d.Verdict != want.Verdict || d.Reason != want.Reason || d.Remaining != want.Remaining {
		o.failf(e, "%s %s with %d left, the twin %+v", d.Verdict, d.Reason, d.Remaining, want)
	}
	start, end, _ := e.Window(d.At)
	before, within := o.count-d.Remaining, o.since(start)
	if d.Verdict == headgate.Allow {
		before -= cost
	}
	switch {
	case before < min(within, o.count):
		o.failf(e, "%d units count, and %d are in the window", before, within)
	case before > within && (!d.Carried || !o.changed):
		o.failf(e, "%d units count, %d are in the window, and Carried is %v", before, within, d.Carried)
	case before > o.since(o.earliest(start)):
		o.failf(e, "%d units count, and at most %d cannot be excluded", before, o.since(o.earliest(start)))
	case d.Carried != o.twin.Carried():
		o.failf(e, "Carried is %v, and of the twin %v", d.Carried, o.twin.Carried())
	case d.Verdict != headgate.Allow && o.newest <= now && now.Add(d.RetryAfter) != end:
		o.failf(e, "RetryAfter is %s, want the time until %s", d.RetryAfter, end.Time())
	}
	if d.Carried {
		o.carried++
	}
	if d.Verdict != headgate.Allow {
		o.refused++
		return
	}
	o.admitted++
	o.used, o.newest = append(o.used, usedUnits{d.At, start, cost}), max(o.newest, d.At)
	o.receipts = append(o.receipts, d.Receipt)
	if sum := o.since(start); sum > o.count {
		o.failf(e, "%d units of %d are in the window", sum, o.count)
	}
}

// refund gives the newest units of a window back.
func (o *oracle) refund(e *headgate.Edges) {
	o.t.Helper()
	cost := 1 + o.r.Int64N(2)
	d := o.apply(headgate.Op{Key: "k", Policy: o.id, Cost: cost, Kind: headgate.Refund, Edges: e})[0]
	if want := o.twin.Do(e, o.clock.Now(), cost, headgate.Refund); d.Remaining != want.Remaining {
		o.failf(e, "after a refund %d are left, want %d", d.Remaining, want.Remaining)
	}
	if d.Receipt.Cost > 0 {
		o.receipts = nil
	}
	o.drop(len(o.used)-1, d.Receipt.Cost)
}

// drop removes units that came back, from an entry and from older ones.
func (o *oracle) drop(newest int, units int64) {
	for i := newest; i >= 0 && units > 0; i-- {
		n := min(o.used[i].units, units)
		o.used[i].units -= n
		units -= n
	}
}

// giveLastBack returns the units of a random receipt, while they can be within a window.
func (o *oracle) giveLastBack() {
	if len(o.receipts) == 0 {
		return
	}
	n := o.r.IntN(len(o.receipts))
	r := o.receipts[n]
	o.receipts = slices.Delete(o.receipts, n, n+1)
	o.giveBack(r)
	if o.twin.Return(r.From, r.Cost, o.clock.Now()) {
		o.drop(slices.IndexFunc(o.used, func(u usedUnits) bool { return u.at == r.From }), r.Cost)
	}
}

func (o *oracle) failf(e *headgate.Edges, format string, args ...any) {
	o.t.Helper()
	o.t.Fatalf("%s at %s in the window from %s: "+format, append([]any{o.unit, o.clock.Now().Time(), e[1].Time()}, args...)...)
}

// earliest gives the time from which units cannot be excluded from the window from start: those in the
// windows of units that were used since.
func (o *oracle) earliest(start headgate.Instant) headgate.Instant {
	for {
		first := start
		for _, u := range o.used {
			if u.at >= start {
				first = min(first, u.start)
			}
		}
		if first == start {
			return start
		}
		start = first
	}
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
