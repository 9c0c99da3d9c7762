package config

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // The tests use the tables of the binary, as headgate does.
)

// TestCalendarText: check prints the next three edges of each unit of a rule, in its time zone.
func TestCalendarText(t *testing.T) {
	c, err := Parse("f", read(t, "testdata/ok/calendar.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"quota: the next windows of a day begin at 2026-03-29T00:00:00+01:00, 2026-03-30T00:00:00+02:00, 2026-03-31T00:00:00+02:00 (Europe/Madrid)",
		"quota: the next windows of a week begin at 2026-03-29T00:00:00+01:00, 2026-04-05T00:00:00+02:00, 2026-04-12T00:00:00+02:00 (Europe/Madrid)",
		"quota: the next windows of a month begin at 2026-03-31T00:00:00+02:00, 2026-04-30T00:00:00+02:00, 2026-05-31T00:00:00+02:00 (Europe/Madrid)",
		"quota: the next windows of a year begin at 2027-01-31T00:00:00+01:00, 2028-01-31T00:00:00+01:00, 2029-01-31T00:00:00+01:00 (Europe/Madrid)",
		"special: the next windows of a month begin at 2026-04-15T00:00:00Z, 2026-05-15T00:00:00Z, 2026-06-15T00:00:00Z (UTC)",
	}, "\n") + "\n"
	if got := c.CalendarText(time.Date(2026, time.March, 28, 12, 0, 0, 0, time.UTC)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	plain, err := Parse("f", []byte("version: 1\nrules: [{name: a, key: [ip], limits: [5/1d]}]\n"))
	if err != nil || plain.CalendarText(time.Now()) != "" {
		t.Errorf("a rule without a calendar period has the text %q, %v", plain.CalendarText(time.Now()), err)
	}
}
