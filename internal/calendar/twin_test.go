package calendar

import (
	"testing"
	"time"
	_ "time/tzdata" // The machine may have no tables of time zones.

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

// zones are 30 zones. The first ones have the hardest days: they change at midnight, skip a
// day, or change by parts of an hour.
var zones = []string{
	"America/Asuncion", "America/Santiago", "America/Havana", "Atlantic/Azores", "Asia/Amman", "Asia/Gaza", "Pacific/Apia",
	"Pacific/Kwajalein", "Pacific/Kiritimati", "Pacific/Fakaofo", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Beirut", "Asia/Tehran",
	"America/Sao_Paulo", "America/Scoresbysund", "America/St_Johns", "Antarctica/Troll", "Africa/Monrovia", "Asia/Damascus",
	"America/Godthab", "America/New_York", "Europe/London", "Europe/Berlin", "Africa/Casablanca", "Asia/Kathmandu", "Asia/Kolkata",
	"Asia/Tokyo", "Pacific/Chatham", "UTC",
}

func zone(tb testing.TB, name string) *time.Location {
	tb.Helper()
	in, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatal(err)
	}
	return in
}

// firstDay and lastDay limit the days of the twin: from 1968 to 2101.
const (
	firstDay = -2 * 366
	lastDay  = 132 * 366
)

// starts is the twin: the first second of each day, from firstDay on. It walks through time in
// steps, and finds the second of each change of the offset by halving. Between two changes,
// local time moves evenly.
type starts []int64

func startsOf(in *time.Location) starts {
	const step = 12 * 3600 // No zone changes twice within half a day.
	offset := func(t int64) int64 {
		_, off := time.Unix(t, 0).In(in).Zone()
		return int64(off)
	}
	var all starts
	day, from := int64(firstDay), int64((firstDay-1)*daySeconds)
	for day < lastDay {
		to, off := from+step, offset(from)
		if offset(to) != off {
			low, high := from, to // The offset of low is off, and that of high is not.
			for high-low > 1 {
				if middle := (low + high) / 2; offset(middle) == off {
					low = middle
				} else {
					high = middle
				}
			}
			to = high
		}
		for ; to+off > day*daySeconds; day++ { // The last second of this part is at least in this day.
			all = append(all, max(from, day*daySeconds-off))
		}
		from = to
	}
	return all
}

func (s starts) start(day int64) int64 { return s[day-firstDay] }

// number gives the number of a date, without a calendar of its own zone.
func number(year int, month time.Month, day int) int64 {
	return (time.Date(year, month, day, 12, 0, 0, 0, time.UTC).Unix()+1000*daySeconds)/daySeconds - 1000
}

// monthDay gives the day on which a month of the twin begins: month_starts, or the last day.
func monthDay(year int, month time.Month, first int) int64 {
	for day := first; ; day-- {
		if at := time.Date(year, month, day, 12, 0, 0, 0, time.UTC); at.Month() == month {
			return number(year, month, day)
		}
	}
}

// windowsFrom1970 gives the starts of the windows of a unit until 2100, without empty windows.
func (s starts) windowsFrom1970(unit Unit, settings Settings) []int64 {
	var all []int64
	add := func(day int64) {
		at := s.start(day)
		if n := len(all); n > 0 && all[n-1] == at {
			return
		}
		all = append(all, at)
	}
	switch unit {
	case Day, Week:
		for day := int64(-20); day < 131*365; day++ {
			if unit == Day || time.Unix(day*daySeconds, 0).UTC().Weekday() == settings.WeekStarts {
				add(day)
			}
		}
	default:
		for year := 1969; year <= 2101; year++ {
			for month := time.January; month <= time.December; month++ {
				if unit == Month || month == time.January {
					add(monthDay(year, month, settings.MonthStarts))
				}
			}
		}
	}
	return all
}

// compare checks the edges at the last second of each window, and with both at its first one too.
func compare(t *testing.T, s starts, unit Unit, settings Settings, both bool) {
	t.Helper()
	all := s.windowsFrom1970(unit, settings)
	for i := 1; i+2 < len(all); i++ {
		want := headgate.Edges{instant(all[i-1]), instant(all[i]), instant(all[i+1]), instant(all[i+2])}
		for _, at := range []int64{all[i+1] - 1, all[i]} {
			if at == all[i] && !both {
				continue
			}
			if got := settings.Edges(unit, time.Unix(at, 0)); got != want {
				t.Fatalf("%s of %s with month_starts %d and week_starts %s, at %s:\ngot  %v\nwant %v", unit, settings.Zone,
					settings.MonthStarts, settings.WeekStarts, time.Unix(at, 0).UTC(), times(got), times(want))
			}
		}
	}
}

func times(e headgate.Edges) (all [4]time.Time) {
	for i, at := range e {
		all[i] = at.Time()
	}
	return all
}

// TestMonthsAsTwin compares months and years with the twin: every month from 1970 to 2100,
// with every month_starts, in 30 zones. It takes more than a second, because it computes two
// million edges.
func TestMonthsAsTwin(t *testing.T) {
	t.Parallel()
	for _, name := range zones[:race.Fewer(len(zones), 2)] {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := Settings{Zone: zone(t, name)}
			s := startsOf(settings.Zone)
			for settings.MonthStarts = 1; settings.MonthStarts <= LastMonthStart; settings.MonthStarts++ {
				compare(t, s, Month, settings, settings.MonthStarts%10 == 1)
				compare(t, s, Year, settings, true)
			}
		})
	}
}

// TestDaysAsTwin compares days and weeks with the twin: every day from 1970 to 2100, in 30
// zones.
func TestDaysAsTwin(t *testing.T) {
	t.Parallel()
	for _, name := range zones[:race.Fewer(len(zones), 2)] {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := Settings{Zone: zone(t, name), MonthStarts: 1}
			s := startsOf(settings.Zone)
			compare(t, s, Day, settings, true)
			for settings.WeekStarts = time.Sunday; settings.WeekStarts <= time.Saturday; settings.WeekStarts++ {
				compare(t, s, Week, settings, false)
			}
		})
	}
}
