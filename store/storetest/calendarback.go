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
		"a refused group, after a step back": calendarRefusedBack,
	} {
		t.Run(name, func(t *testing.T) { story(s.bench(t)) })
	}
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
