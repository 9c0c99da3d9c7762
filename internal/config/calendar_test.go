package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // The machine may have no tables of time zones.
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
	const quotas = "version: 1\nrules: [{name: a, key: ['header:C'], quota: calls}]\ndefault_plan: free\n" +
		"plans: {free: {time_zone: Asia/Tokyo, quotas: {calls: [{limit: 5/month}]}}}\n" +
		"customers: {a: {month_starts: 15}, b: {month_starts: 15}, c: {limits: {calls: [{limit: 5/day}]}, time_zone: UTC}, d: {}}\n"
	quoted, err := Parse("f", []byte(quotas))
	if err != nil {
		t.Fatal(err)
	}
	want = strings.Join([]string{
		"plan free: the next windows of a month begin at 2026-04-01T00:00:00+09:00, 2026-05-01T00:00:00+09:00, 2026-06-01T00:00:00+09:00 (Asia/Tokyo)",
		"customer \"a\" and 1 more: the next windows of a month begin at 2026-04-15T00:00:00+09:00, 2026-05-15T00:00:00+09:00, 2026-06-15T00:00:00+09:00 (Asia/Tokyo)",
		"customer \"c\": the next windows of a day begin at 2026-03-29T00:00:00Z, 2026-03-30T00:00:00Z, 2026-03-31T00:00:00Z (UTC)",
		"customer \"c\": the next windows of a month begin at 2026-04-01T00:00:00Z, 2026-05-01T00:00:00Z, 2026-06-01T00:00:00Z (UTC)",
	}, "\n") + "\n"
	if got := quoted.CalendarText(time.Date(2026, time.March, 28, 12, 0, 0, 0, time.UTC)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	plain, err := Parse("f", []byte("version: 1\nrules: [{name: a, key: [ip], limits: [5/1d]}]\n"))
	if err != nil || plain.CalendarText(time.Now()) != "" {
		t.Errorf("a rule without a calendar period has the text %q, %v", plain.CalendarText(time.Now()), err)
	}
}

// TestCalendarTextOfRaises: a raise and limits of a customer have lines if their plan has no line with the unit. A raise that has
// ended has none.
func TestCalendarTextOfRaises(t *testing.T) {
	const text = `version: 1
rules: [{name: a, key: ['header:C'], quota: calls}]
default_plan: free
plans: {free: {time_zone: Asia/Tokyo, quotas: {calls: [{limit: 5/month}]}}}
customers:
  a: {raise: {limits: {calls: [{limit: 9/day}]}, until: 2026-03-31}}
  b: {raise: {limits: {calls: [{limit: 9/day}, {limit: 99/month}]}, until: 2026-03-31}}
  c: {raise: {limits: {calls: [{limit: 9/week}]}, until: 2026-03-01}}
  d: {raise: {limits: {calls: [{limit: 9/week}]}, until: 2026-03-31}, month_starts: 15}
  e: {limits: {calls: [{limit: 9/year}]}}
  f: {raise: {limits: {calls: [{limit: 9/month}]}, until: 2026-03-31}}
`
	c, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, time.March, 28, 12, 0, 0, 0, time.UTC)
	var got []string
	for line := range strings.Lines(c.CalendarText(now)) {
		head, _, _ := strings.Cut(line, " begin at")
		got = append(got, strings.Replace(head, ": the next windows of a", "", 1))
	}
	want := `plan free month, customer "a" and 1 more day, customer "d" week, customer "d" month, customer "e" year`
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	if got, want := c.RaiseWarnings(now), `customer "c": the raise has ended, and has no effect: `; len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("got the warnings %q", got)
	}
	if got := c.RaiseWarnings(time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)); got != nil {
		t.Errorf("before all ends: got the warnings %q", got)
	}
	if got := c.RaiseWarnings(now.AddDate(1, 0, 0)); len(got) != 1 || !strings.HasPrefix(got[0], `customer "a", "b", "c" and 2 more: `) {
		t.Errorf("after all ends: got the warnings %q", got)
	}
}

// TestEndedOverrides: what has ended is said with its end, from that time on.
func TestEndedOverrides(t *testing.T) {
	c, err := Parse("headgate.yaml", []byte(`version: 1
rules:
  - name: a
    key: [header:X]
    limits: [1/s]
    overrides:
      "gold-*": {unlimited: true, until: 2026-01-31T10:00:00Z}
      b: {limits: [2/s], until: 2026-01-30}
      c: {limits: [2/s], until: 2026-01-30}
      d: {limits: [2/s], until: 2026-01-30}
      e: {limits: [2/s]}
`))
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2026, time.January, 31, 10, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		end.AddDate(0, 0, -2): "[]",
		end.Add(-1): `[rule a: these overrides have ended, and have no effect: "b" at 2026-01-31T00:00:00Z, "c" at 2026-01-31T00:00:00Z, ` +
			`"d" at 2026-01-31T00:00:00Z: remove them, or set a later until]`,
		end: `[rule a: these overrides have ended, and have no effect: "gold-*" at 2026-01-31T10:00:00Z, "b" at 2026-01-31T00:00:00Z, ` +
			`"c" at 2026-01-31T00:00:00Z, and 1 more: remove them, or set a later until]`,
	} {
		if got := fmt.Sprint(c.OverrideWarnings(at)); got != want {
			t.Errorf("at %s:\n got %s\nwant %s", at, got, want)
		}
	}
}
