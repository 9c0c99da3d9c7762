package storetest

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/calendar"
)

// testCalendarStates checks which requests change the counts of a key. Later settings, and a clock that steps back, see the
// difference.
func (s *suite) testCalendarStates(t *testing.T) {
	if s.without[headgate.FixedWindow] {
		return
	}
	for name, story := range map[string]func(b *bench){
		"a refused group ends a count":       calendarRefusedAll,
		"a refused group moves a count":      calendarRefusedAllBack,
		"a refused group, after a step back": calendarRefusedBack,
	} {
		t.Run(name, func(t *testing.T) { story(s.bench(t)) })
	}
}

// noonDays are days that begin at 12:00 UTC.
func noonDays() calendar.Settings {
	return calendar.Settings{Zone: time.FixedZone("noon", 12*3600), WeekStarts: time.Monday, MonthStarts: 1}
}

// onDay moves the clock to a time of a day in March 2026, and decides ops in the days of the settings there.
func (b *bench) onDay(s calendar.Settings, day, hour, minute int, ops ...headgate.Op) []headgate.Decision {
	b.t.Helper()
	b.clock.Advance(time.Date(2026, time.March, day, hour, minute, 0, 0, time.UTC).Sub(b.clock.Now().Time()))
	for i := range ops {
		ops[i].Key, ops[i].Edges = "k", b.edgesOf(s, headgate.Day, 0)
	}
	return b.apply(ops...)
}

// wantLeft checks the verdict, the remaining units, and when the count ends.
func (b *bench) wantLeft(what string, d headgate.Decision, verdict headgate.Verdict, left int64, reset time.Duration) {
	b.t.Helper()
	if d.Verdict != verdict || d.Remaining != left || d.ResetAfter != reset {
		b.t.Errorf("%s: %s with %d left, reset after %s; want %s with %d left, reset after %s", what, d.Verdict, d.Remaining, d.ResetAfter,
			verdict, left, reset)
	}
}

// refusedAll gives a TakeIfAll of 1 unit, and one that its limit of 0 refuses.
func refusedAll(id, none headgate.PolicyID) []headgate.Op {
	return []headgate.Op{
		{Policy: id, Cost: 1, Kind: headgate.TakeIfAll}, {Policy: none, Cost: 1, Kind: headgate.TakeIfAll, Window: 1},
	}
}

// calendarRefusedAll: a refused group of TakeIfAll counts nothing, and ends a count as other requests do. The unit of 14:00 is
// then in a count of its own, and those of 4:00 are not in the day from noon.
func calendarRefusedAll(b *bench) {
	id, none, utc := b.prepare(calendarLimit(5, headgate.Day)), b.prepare(calendarLimit(0, headgate.Day)), calendar.Default()
	b.wantLeft("4 units", b.onDay(utc, 1, 4, 0, headgate.Op{Policy: id, Cost: 4})[0], headgate.Allow, 1, 20*time.Hour)
	b.wantLeft("the group", b.onDay(noonDays(), 1, 13, 0, refusedAll(id, none)...)[0], headgate.Allow, 5, 0)
	b.wantLeft("1 unit", b.onDay(utc, 1, 14, 0, headgate.Op{Policy: id, Cost: 1})[0], headgate.Allow, 0, 10*time.Hour)
	d := b.onDay(noonDays(), 1, 15, 0, headgate.Op{Policy: id, Cost: 4})[0]
	b.wantLeft("4 units, from noon", d, headgate.Allow, 0, 21*time.Hour)
	if d.Carried {
		b.t.Error("4 units, from noon: Carried")
	}
}

// calendarRefusedAllBack: such a group also moves a count to the present, after a long step back of the clock.
func calendarRefusedAllBack(b *bench) {
	id, none, utc := b.prepare(calendarLimit(5, headgate.Day)), b.prepare(calendarLimit(0, headgate.Day)), calendar.Default()
	r := b.onDay(utc, 10, 10, 0, headgate.Op{Policy: id, Cost: 4})[0].Receipt
	b.wantLeft("the group", b.onDay(utc, 5, 10, 0, refusedAll(id, none)...)[0], headgate.Allow, 1, 14*time.Hour)
	b.wantLeft("two days later", b.onDay(utc, 7, 10, 0, headgate.Op{Policy: id, Cost: 5})[0], headgate.Allow, 0, 14*time.Hour)
	b.giveBack(r)
	b.wantLeft("after a receipt of before the step", b.onDay(utc, 7, 11, 0, headgate.Op{Policy: id, Cost: 1})[0], headgate.Deny, 0, 13*time.Hour)
}

// calendarRefusedBack: in a refused group after a long step back of the clock, an op that passes alone has the remaining units of
// a window without the dropped counts.
func calendarRefusedBack(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Day)), calendar.Default()
	b.onDay(utc, 10, 10, 0, headgate.Op{Policy: id, Cost: 3})
	b.onDay(utc, 11, 10, 0, headgate.Op{Policy: id, Cost: 1})
	ops := []headgate.Op{{Policy: id, Cost: 1}, {Policy: id, Cost: 6, Window: 1}}
	b.wantLeft("the group", b.onDay(utc, 7, 10, 0, ops...)[0], headgate.Allow, 4, 14*time.Hour)
	b.wantLeft("a peek", b.onDay(utc, 7, 10, 0, headgate.Op{Policy: id, Kind: headgate.Peek})[0], headgate.Allow, 4, 14*time.Hour)
}
