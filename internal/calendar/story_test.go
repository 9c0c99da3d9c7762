package calendar

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestHardDays tells the windows of days on which zones change at midnight or skip a day.
func TestHardDays(t *testing.T) {
	monthly := func(starts int) Settings { return Settings{MonthStarts: starts} }
	for _, test := range []struct {
		name, zone string
		settings   Settings
		unit       Unit
		at         string // UTC
		want       string // The four edges, in UTC.
	}{
		{
			"in Asuncion midnight of the first of October 2017 is skipped: the month begins at 01:00",
			"America/Asuncion", monthly(1), Month, "2017-10-15T00:00:00Z",
			"2017-09-01T04:00:00Z 2017-10-01T04:00:00Z 2017-11-01T03:00:00Z 2017-12-01T03:00:00Z",
		},
		{
			"in Santiago the clock skips from 00:00 to 01:00 on the 11th of August 2019, and from 24:00 back to 23:00 on the 6th of April",
			"America/Santiago",
			Settings{},
			Day, "2019-09-08T12:00:00Z",
			"2019-09-07T04:00:00Z 2019-09-08T04:00:00Z 2019-09-09T03:00:00Z 2019-09-10T03:00:00Z",
		},
		{
			"in Havana the hour after midnight is repeated: the day begins with the first of them",
			"America/Havana",
			Settings{},
			Day, "2024-11-03T12:00:00Z",
			"2024-11-02T04:00:00Z 2024-11-03T04:00:00Z 2024-11-04T05:00:00Z 2024-11-05T05:00:00Z",
		},
		{
			"Apia skips the 30th of December 2011: the empty window is left out",
			"Pacific/Apia",
			Settings{},
			Day, "2011-12-30T05:00:00Z",
			"2011-12-28T10:00:00Z 2011-12-29T10:00:00Z 2011-12-30T10:00:00Z 2011-12-31T10:00:00Z",
		},
		{
			"a month in Apia that starts on the skipped 30th begins with the 31st",
			"Pacific/Apia", monthly(30), Month, "2012-01-01T00:00:00Z",
			"2011-11-30T10:00:00Z 2011-12-30T10:00:00Z 2012-01-29T10:00:00Z 2012-02-28T10:00:00Z",
		},
		{
			"the 31st of February is its last day, also in a leap year",
			"UTC", monthly(31), Month, "2024-03-01T00:00:00Z",
			"2024-01-31T00:00:00Z 2024-02-29T00:00:00Z 2024-03-31T00:00:00Z 2024-04-30T00:00:00Z",
		},
		{
			"a year begins with January's window", "UTC", monthly(6), Year, "2024-01-05T23:59:59Z",
			"2022-01-06T00:00:00Z 2023-01-06T00:00:00Z 2024-01-06T00:00:00Z 2025-01-06T00:00:00Z",
		},
		{
			"weeks from Sunday", "Europe/Berlin",
			Settings{WeekStarts: time.Sunday},
			Week, "2024-04-01T00:00:00Z",
			"2024-03-23T23:00:00Z 2024-03-30T23:00:00Z 2024-04-06T22:00:00Z 2024-04-13T22:00:00Z",
		},
		{
			"the zero settings mean UTC and the first day", "UTC",
			Settings{},
			Month, "1970-01-01T00:00:00Z",
			"1969-12-01T00:00:00Z 1970-01-01T00:00:00Z 1970-02-01T00:00:00Z 1970-03-01T00:00:00Z",
		},
	} {
		at, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		test.settings.Zone = zone(t, test.zone)
		var got []string
		for _, edge := range test.settings.Edges(test.unit, at) {
			got = append(got, edge.Time().Format(time.RFC3339))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, text, test.want)
		}
	}
}

// missedMonths are the months of Asuncion whose first midnight the clock skips: 22 of October and one of September.
const missedMonths = "1972-10 1975-10 1976-10 1977-10 1978-10 1979-10 1980-10 1981-10 1982-10 1983-10 1984-10 1985-10 1986-10 1987-10 " +
	"1988-10 1990-10 1993-10 1994-10 1995-10 2000-10 2002-09 2017-10 2023-10"

// TestTimeDateMisses names the starts that time.Date misses until 2100, as a reason for dayStart. The twin has the right starts.
func TestTimeDateMisses(t *testing.T) {
	for _, row := range []struct {
		zone   string
		days   int
		months string
	}{{"America/Santiago", 129, ""}, {"America/Asuncion", 51, missedMonths}, {"UTC", 0, ""}} {
		in, days := zone(t, row.zone), 0
		var months []string
		twin := startsOf(in)
		for day := range number(2100, time.January, 1) {
			date := time.Unix(day*daySeconds, 0).UTC()
			if dayStart(in, day) != twin.start(day) {
				t.Fatalf("%s: the start of %s differs from the twin", row.zone, date.Format(time.DateOnly))
			}
			if time.Date(date.Year(), date.Month(), date.Day(), 0, 0, 0, 0, in).Unix() == twin.start(day) {
				continue
			}
			if days++; date.Day() == 1 {
				months = append(months, date.Format("2006-01"))
			}
		}
		if got := strings.Join(months, " "); days != row.days || got != row.months {
			t.Errorf("%s: time.Date misses the start of %d days, and of the months %s; want %d and %s", row.zone, days, got, row.days, row.months)
		}
	}
}

// TestWindowsComputeOnce: within a window, Edges gives the same value and allocates nothing.
func TestWindowsComputeOnce(t *testing.T) {
	w := New(Settings{Zone: zone(t, "America/New_York"), MonthStarts: 1}, Month)
	at := headgate.Instant(time.Date(2024, 3, 5, 0, 0, 0, 0, time.UTC).UnixNano())
	first := w.Edges(at)
	var sink *headgate.Edges
	if n := testing.AllocsPerRun(100, func() { sink = w.Edges(at + 5) }); n != 0 || sink != first {
		t.Errorf("Edges makes %v allocations, and gives %p after %p", n, sink, first)
	}
	if last := w.Edges(first[2] - 1); last != first {
		t.Error("the last nanosecond of a window has other edges")
	}
	if next := w.Edges(first[2]); next[1] != first[2] || next[0] != first[1] {
		t.Errorf("the edges after %v are %v", times(*first), times(*next))
	}
	if w.Settings().MonthStarts != 1 || w.Unit() != Month {
		t.Errorf("Windows has %+v and %s", w.Settings(), w.Unit())
	}
}

// TestSettingsOutOfRange: Check names the field, and New panics.
func TestSettingsOutOfRange(t *testing.T) {
	for want, s := range map[string]Settings{
		"calendar: month_starts 32 is out of range: use 1 to 31":                     {MonthStarts: 32},
		"calendar: month_starts -1 is out of range: use 1 to 31":                     {MonthStarts: -1},
		"calendar: week_starts 7 is out of range: use a day from Sunday to Saturday": {WeekStarts: 7},
	} {
		if err := s.Check(); err == nil || err.Error() != want {
			t.Errorf("Check of %+v gives %v, want %s", s, err, want)
		}
	}
	if err := Default().Check(); err != nil {
		t.Error(err)
	}
	for name, construct := range map[string]func(){
		"settings": func() { New(Settings{MonthStarts: 99}, Month) }, "no unit": func() { New(Settings{}, headgate.NoCalendar) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New with bad %s does not panic", name)
				}
			}()
			construct()
		}()
	}
}
