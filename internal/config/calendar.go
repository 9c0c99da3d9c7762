package config

import (
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/config/field"
)

// zoneFix is how a time zone is written.
const zoneFix = "use an IANA name, like Europe/Berlin, America/New_York or UTC"

// calendar reads where the calendar windows of a rule begin.
func (s *section) calendar(r *guard.Rule) {
	r.Calendar = calendar.Default()
	s.calendarFields(&r.Calendar)
}

// calendarFields reads where calendar windows begin. into has the defaults.
func (s *section) calendarFields(into *calendar.Settings) {
	zone := into.Zone.String()
	s.text(s.declare("time_zone", field.Taken, "IANA name of the time zone in which calendar periods begin, like Europe/Berlin."),
		&zone)
	if v, given := s.given("time_zone"); given && !s.blamed(s.pathOf("time_zone")) {
		s.zone(v, zone, &into.Zone)
	}
	oneOf(s, s.declare("week_starts", field.Taken, "First day of the weeks of a limit like 50/week."), &into.WeekStarts, weekdays())
	first := int64(into.MonthStarts)
	s.number(s.declare("month_starts", field.Taken, "Day on which the months of a limit like 200/month begin, and its years. In a shorter "+
		"month, the last day counts."), &first, 1, calendar.LastMonthStart)
	into.MonthStarts = int(first)
}

// zone reads the name of a time zone.
func (s *section) zone(v value, name string, into **time.Location) {
	if name == "" || strings.EqualFold(name, "local") {
		s.fault(v, quote(name)+" is no time zone of its own", zoneFix)
		return
	}
	if in, known := s.zones[name]; known { // Each load reads a file, and many customers have the same zone.
		*into = in
		return
	}
	in, err := time.LoadLocation(name)
	if err != nil {
		s.fault(v, quote(name)+" is no known time zone", zoneFix)
		return
	}
	if s.zones == nil {
		s.zones = map[string]*time.Location{}
	}
	s.zones[name], *into = in, in
}

func weekdays() []choice[time.Weekday] {
	all := make([]choice[time.Weekday], 0, 7)
	for _, day := range []time.Weekday{
		time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday, time.Sunday,
	} {
		all = append(all, choice[time.Weekday]{word: strings.ToLower(day.String()), value: day})
	}
	return all
}

// checkCalendar rejects settings that no limit of the rule uses.
func (s *section) checkCalendar(r *guard.Rule, all []limits) {
	used := map[headgate.CalendarUnit]bool{r.Exceed.Hard.Limit.Calendar: true}
	for _, l := range all {
		for _, p := range l.policies {
			used[p.Limit.Calendar] = true
		}
	}
	if len(used) == 1 && used[headgate.NoCalendar] {
		r.Calendar = calendar.Settings{} // A rule without calendar periods keeps no settings of them.
	}
	months := used[headgate.Month] || used[headgate.Year]
	for _, f := range []struct {
		name, example string
		used          bool
	}{
		{"time_zone", "200/month", months || used[headgate.Week] || used[headgate.Day]},
		{"week_starts", "50/week", used[headgate.Week]},
		{"month_starts", "200/month", months},
	} {
		_, given := s.given(f.name)
		if given && r.Quota != "" {
			s.fault(s.keyOf(f.name), "has no effect on a quota", "move it to the plan, or to the customer")
			continue
		}
		if given && !f.used && !s.blamedAny(f.name, "limits") {
			s.fault(s.keyOf(f.name), "has no effect without a limit like "+f.example, "remove it, or write a limit like "+f.example)
		}
	}
}
