package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/config/field"
)

// maxOwnCalendars bounds the lines about customers with calendars or units of their own.
const maxOwnCalendars = 20

// calendarLines says when windows of the calendar begin.
type calendarLines struct {
	text strings.Builder
	now  time.Time
}

// CalendarText says when the windows of each limit with a calendar period begin: the next three
// edges after now, in the time zone of the rule, the plan or the customers. Months in the files of a decision server
// are in UTC. It is empty without calendar periods.
func (c *Config) CalendarText(now time.Time) string {
	l := &calendarLines{now: now}
	for i := range c.Rules {
		r := &c.Rules[i]
		l.write(r.Name, r.Calendar, r.AllPolicies())
	}
	for i := range c.Plans {
		p := &c.Plans[i]
		l.write("plan "+p.Name, p.Calendar, policiesOf(p.Quotas))
	}
	l.customers(c)
	for i := range c.Domains {
		d := &c.Domains[i]
		l.write("domain "+shown(d.Name), calendar.Default(), leafPolicies(nil, d.Descriptors))
	}
	return l.text.String()
}

// write writes a line for each unit that the policies have.
func (l *calendarLines) write(name string, s calendar.Settings, all []headgate.Policy) {
	said := map[headgate.CalendarUnit]bool{headgate.NoCalendar: true}
	for _, p := range all {
		unit := p.Limit.Calendar
		if said[unit] {
			continue
		}
		said[unit] = true
		fmt.Fprintf(&l.text, "%s: the next windows of a %s begin at", name, unit)
		sep := " "
		for at := range nextEdges(s, unit, s.Edges(unit, l.now)) {
			l.text.WriteString(sep + at.Format(time.RFC3339))
			sep = ", "
		}
		fmt.Fprintf(&l.text, " (%s)\n", s.Zone)
	}
}

// customers writes the lines of customers that the line of their plan does not cover: those with a calendar of their own, and those
// whose own limits or raise have another unit. There is one line for each calendar, plan and set of units.
func (l *calendarLines) customers(c *Config) {
	type group struct {
		calendar, plan, units string
	}
	type line struct {
		name     string
		calendar calendar.Settings
		policies []headgate.Policy
		uses     int
	}
	lines := map[group]*line{}
	var order []*line
	for i := range c.Customers {
		customer := &c.Customers[i]
		s, policies := l.beyondPlan(c, customer)
		units := unitsOf(policies)
		if len(units) == 0 {
			continue
		}
		g := group{fmt.Sprint(s.Zone, s.WeekStarts, s.MonthStarts), customer.Plan, fmt.Sprint(units)}
		if lines[g] == nil {
			lines[g] = &line{customer.Name, s, policies, 0}
			order = append(order, lines[g])
		}
		lines[g].uses++
	}
	for _, one := range order[:min(len(order), maxOwnCalendars)] {
		name := "customer " + quote(one.name)
		if n := one.uses - 1; n > 0 {
			name += fmt.Sprintf(" and %d more", n)
		}
		l.write(name, one.calendar, one.policies)
	}
	if n := len(order) - maxOwnCalendars; n > 0 {
		fmt.Fprintf(&l.text, "customers have %s of windows of their own\n", field.Counted(n, "more set"))
	}
}

// beyondPlan gives the limits of a customer whose windows the line of its plan does not show, and where they begin.
func (l *calendarLines) beyondPlan(c *Config, customer *guard.Customer) (calendar.Settings, []headgate.Policy) {
	plan := c.planOf(customer)
	own := policiesOf(customer.Quotas)
	if customer.Raise != nil && !raiseEnded(customer, l.now) {
		own = append(own, policiesOf(customer.Raise.Quotas)...)
	}
	switch {
	case customer.Calendar != nil:
		return *customer.Calendar, append(own, policiesOf(plan.Quotas)...)
	case plan.Calendar.Zone == nil:
		return calendar.Settings{}, nil // The plan is in a source.
	}
	shown := unitsOf(policiesOf(plan.Quotas))
	return plan.Calendar, slices.DeleteFunc(own, func(p headgate.Policy) bool { return slices.Contains(shown, p.Limit.Calendar) })
}

// unitsOf lists the units of the calendar that limits have, in the order of the constants.
func unitsOf(all []headgate.Policy) []headgate.CalendarUnit {
	var units []headgate.CalendarUnit
	for _, p := range all {
		if unit := p.Limit.Calendar; unit != headgate.NoCalendar && !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	slices.Sort(units)
	return units
}

// planOf gives the plan of a customer, which is empty if the configuration does not have it.
func (c *Config) planOf(customer *guard.Customer) guard.Plan {
	name := customer.Plan
	if name == "" {
		name = c.DefaultPlan
	}
	for i := range c.Plans {
		if c.Plans[i].Name == name {
			return c.Plans[i]
		}
	}
	return guard.Plan{}
}

// policiesOf lists the limits of quotas.
func policiesOf(all []guard.QuotaLimits) []headgate.Policy {
	var policies []headgate.Policy
	for _, q := range all {
		for i := range q.Limits {
			policies = append(policies, q.Limits[i].Policy)
		}
	}
	return policies
}

// leafPolicies adds the limits of the descriptors.
func leafPolicies(to []headgate.Policy, all []guard.Descriptor) []headgate.Policy {
	for i := range all {
		if leaf := all[i].Leaf; leaf != nil {
			to = append(to, leaf.Policies...)
		}
		to = leafPolicies(to, all[i].Descriptors)
	}
	return to
}

// nextEdges gives the next three edges after the present window.
func nextEdges(s calendar.Settings, unit headgate.CalendarUnit, e headgate.Edges) func(func(time.Time) bool) {
	last := s.Edges(unit, e[3].Time())
	return func(yield func(time.Time) bool) {
		for _, at := range []headgate.Instant{e[2], e[3], last[2]} {
			if !yield(at.Time().In(s.Zone)) {
				return
			}
		}
	}
}
