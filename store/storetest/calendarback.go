package storetest

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
)

// testCalendarStates checks which requests change the counts of a key. Later settings, and a clock that steps back, see the
// difference.
func (s *suite) testCalendarStates(t *testing.T) {
	if s.without[headgate.FixedWindow] {
		return
	}
	for name, story := range map[string]func(b *bench){
		"a refused group ends a count":         calendarRefusedAll,
		"a refused group moves a count":        calendarRefusedAllBack,
		"an empty count has no start":          calendarEmptyCount,
		"a count that a refund empties":        calendarRefundEmpties,
		"an empty count, a long step back":     calendarEmptyLongBack,
		"a refused group, after a step back":   calendarRefusedBack,
		"a key of cost 0, after a step back":   calendarZeroCost,
		"an empty count before an ended count": calendarEmptyShortBack,
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
	b.wantLeft("4 units, from noon", b.onDay(noonDays(), 1, 15, 0, headgate.Op{Policy: id, Cost: 4})[0], headgate.Allow, 0, 21*time.Hour)
}

// calendarRefusedAllBack: such a group also moves a count to the present, after a long step back of the clock.
func calendarRefusedAllBack(b *bench) {
	id, none, utc := b.prepare(calendarLimit(5, headgate.Day)), b.prepare(calendarLimit(0, headgate.Day)), calendar.Default()
	r := b.onDay(utc, 10, 10, 0, headgate.Op{Policy: id, Cost: 4})[0].Receipt
	b.wantLeft("the group", b.onDay(utc, 5, 10, 0, refusedAll(id, none)...)[0], headgate.Allow, 1, 14*time.Hour)
	b.wantLeft("two days later", b.onDay(utc, 7, 10, 0, headgate.Op{Policy: id, Cost: 5})[0], headgate.Allow, 0, 14*time.Hour)
	b.giveBack(r)
	b.wantLeft("after a receipt of before the step", b.onDay(utc, 7, 11, 0, headgate.Op{Policy: id, Cost: 1})[0],
		headgate.Deny, 0, 13*time.Hour)
}

// calendarEmptyCount: requests that count nothing begin no count, so after a step back of the clock the window of the present
// counts.
func calendarEmptyCount(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Day)), calendar.Default()
	never := headgate.Op{Policy: id, Cost: 6}
	b.onDay(noonDays(), 1, 13, 0, headgate.Op{Policy: id, Cost: 5})
	b.wantLeft("6 of 5", b.onDay(utc, 2, 0, 10, never)[0], headgate.Deny, 5, 0)
	b.wantLeft("6 of 5, from noon", b.onDay(noonDays(), 2, 12, 10, never)[0], headgate.Deny, 5, 0)
	d := b.onDay(noonDays(), 2, 11, 50, headgate.Op{Policy: id, Cost: 5})[0]
	b.wantLeft("after a step back of 20 minutes", d, headgate.Deny, 0, 10*time.Minute)
	if d.At != b.clock.Now() {
		b.t.Errorf("decided at %s, want %s", d.At.Time(), b.clock.Now().Time())
	}
}

// calendarRefundEmpties: a Refund after a step back of the clock empties a count. Its decision is that of the window in which
// the units came back, and the next one is that of the present.
func calendarRefundEmpties(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Day)), calendar.Default()
	b.onDay(utc, 1, 10, 0, headgate.Op{Policy: id, Cost: 4})
	b.onDay(utc, 2, 0, 10, headgate.Op{Policy: id, Cost: 2})
	d := b.onDay(utc, 1, 23, 50, headgate.Op{Policy: id, Cost: 2, Kind: headgate.Refund})[0]
	b.wantLeft("the refund", d, headgate.Allow, 5, 0)
	if want := b.clock.Now().Add(10 * time.Minute); d.Receipt.Cost != 2 || d.At != want {
		b.t.Errorf("%d units came back at %s, want 2 at %s", d.Receipt.Cost, d.At.Time(), want.Time())
	}
	b.wantLeft("2 more", b.onDay(utc, 1, 23, 50, headgate.Op{Policy: id, Cost: 2})[0], headgate.Deny, 1, 10*time.Minute)
	b.wantLeft("a refund of 1 of 4", b.onDay(utc, 1, 23, 50, headgate.Op{Policy: id, Cost: 1, Kind: headgate.Refund})[0],
		headgate.Allow, 2, 10*time.Minute)
}

// calendarEmptyLongBack: after a step back of more than a window, a count that had ended moves to the present if the one after it
// is empty. Its receipts return nothing.
func calendarEmptyLongBack(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Day)), calendar.Default()
	r := b.onDay(utc, 10, 10, 0, headgate.Op{Policy: id, Cost: 4})[0].Receipt
	b.onDay(utc, 11, 10, 0, headgate.Op{Policy: id, Cost: 6})
	b.wantLeft("1 of 5", b.onDay(utc, 7, 10, 0, headgate.Op{Policy: id, Cost: 1})[0], headgate.Allow, 0, 14*time.Hour)
	b.wantLeft("on the 8th", b.onDay(utc, 8, 10, 0, headgate.Op{Policy: id, Cost: 1})[0], headgate.Allow, 4, 14*time.Hour)
	b.wantLeft("on the 10th", b.onDay(utc, 10, 9, 0, headgate.Op{Policy: id, Cost: 5})[0], headgate.Allow, 0, 15*time.Hour)
	b.wantLeft("later on the 10th", b.onDay(utc, 10, 11, 0, headgate.Op{Policy: id, Cost: 1})[0], headgate.Deny, 0, 13*time.Hour)
	b.giveBack(r)
	b.wantLeft("after a receipt of before the step", b.onDay(utc, 10, 12, 0, headgate.Op{Policy: id, Cost: 1})[0],
		headgate.Deny, 0, 12*time.Hour)
}

// calendarEmptyShortBack: after a step back of up to a window, such a count stays where it is.
func calendarEmptyShortBack(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Day)), calendar.Default()
	first := b.onDay(utc, 10, 1, 0, headgate.Op{Policy: id, Cost: 3})[0].Receipt
	b.giveBack(b.onDay(utc, 11, 1, 0, headgate.Op{Policy: id, Cost: 2})[0].Receipt)
	b.wantLeft("on the 9th", b.onDay(utc, 9, 23, 0, headgate.Op{Policy: id, Cost: 1})[0], headgate.Allow, 1, 25*time.Hour)
	b.wantLeft("on the 10th", b.onDay(utc, 10, 2, 0, headgate.Op{Policy: id, Cost: 2})[0], headgate.Deny, 1, 22*time.Hour)
	b.giveBack(first)
	b.wantLeft("after a return", b.onDay(utc, 10, 3, 0, headgate.Op{Policy: id, Cost: 4})[0], headgate.Allow, 0, 21*time.Hour)
	b.wantLeft("on the 11th", b.onDay(utc, 11, 2, 0, headgate.Op{Policy: id, Cost: 5})[0], headgate.Allow, 0, 22*time.Hour)
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

// calendarZeroCost: a request of 0 units for a new key begins no count.
func calendarZeroCost(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Day)), calendar.Default()
	b.onDay(utc, 2, 0, 10, headgate.Op{Policy: id})
	d := b.onDay(utc, 1, 23, 50, headgate.Op{Policy: id, Cost: 1})[0]
	b.wantLeft("1 unit", d, headgate.Allow, 4, 10*time.Minute)
	if d.At != b.clock.Now() {
		b.t.Errorf("decided at %s, want %s", d.At.Time(), b.clock.Now().Time())
	}
}
