package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

const (
	// maxCustomers bounds the customers of one file. A reload reads all of them.
	maxCustomers = 200_000
	// maxNote bounds the length of a note, in bytes.
	maxNote = 256

	customerExample = "{plan: free}"
)

// customers reads the entries for single customers.
func (q *quotaReading) customers(c *Config) {
	s := q.root
	all := s.sub(s.declare(customersName, field.Taken, "Entries for single customers, by the value of the part that the rules' keys have."),
		"{acme: "+customerExample+"}")
	all.settable = false // Variables cannot set the fields of a customer.
	each := all.outline.each(maxCustomers)
	if each != nil {
		q.customer(&section{reader: s.reader, outline: each, fields: map[string]keyValue{}}, "", c)
	}
	if n := len(all.names); n > maxCustomers {
		s.fault(s.keyOf(customersName), fmt.Sprintf("has %d customers", n), fmt.Sprintf("use at most %d", maxCustomers))
		return
	}
	if len(all.names) > 0 && len(q.counted) == 0 && !q.faulty && !s.deferred {
		s.fault(s.keyOf(customersName), "has no effect, because no rule has a quota", "write quota: NAME in a rule, or remove it")
		return
	}
	if len(all.names) == 0 {
		return
	}
	c.Customers = make([]guard.Customer, 0, len(all.names))
	for _, name := range all.names {
		v, ok := all.valueOf(name)
		if s.full || !ok {
			continue
		}
		one := s.section(v, "write it like "+customerExample)
		if one.self.node == nil {
			continue
		}
		c.Customers = append(c.Customers, q.customer(one, name, c))
	}
	q.nameCustomers(all, c)
}

// customer reads one entry.
func (q *quotaReading) customer(s *section, name string, c *Config) guard.Customer {
	customer := guard.Customer{Name: name}
	v, given := s.text(s.declare("plan", field.Taken, "Plan of the customer. Default: default_plan."), &customer.Plan)
	plan := &guard.Plan{After: guard.AfterMeter}
	switch {
	case s.outline != nil:
	case given:
		plan = q.checkPlan(s, v, customer.Plan, c)
	case c.DefaultPlan != "" && !s.blamed(defaultPlanName):
		plan = q.checkPlan(s, v, c.DefaultPlan, c)
	}
	after := guard.AfterMeter // Without a plan, hard is not judged.
	if plan != nil {
		after = plan.After
	}
	s.declare("limits", field.Taken, "Limits of quotas, in place of those of the plan.")
	customer.Quotas = q.interned.quotas(q.limitsOf(s, "limits", after))
	q.spending(s, &customer, plan)
	q.customerCalendar(s, &customer, plan)
	q.note(s, &customer)
	q.raise(s, &customer, after)
	s.end()
	return customer
}

func hasHard(l guard.QuotaLimit) bool { return l.Hard > 0 }

// spending reads the customer's own hard limits.
func (q *quotaReading) spending(s *section, customer *guard.Customer, plan *guard.Plan) {
	hard := s.sub(s.declare("hard", field.Taken, "The customer's own spending limit: a lower hard for quotas of its plan or its limits."),
		"{api_calls: 300}")
	hard.outline.each(maxQuotas).number(0, 0, headgate.MaxUnits)
	for _, name := range hard.names {
		v, ok := hard.valueOf(name)
		var n int64
		if !ok || !hard.wholeNumber(v, &n, 0, headgate.MaxUnits) || plan == nil {
			continue
		}
		own := quotaOf(customer.Quotas, name)
		if own == nil {
			own = quotaOf(plan.Quotas, name)
		}
		switch i := slices.IndexFunc(own, hasHard); {
		case s.blamed(s.pathOf("limits")) || s.blamed(plansName):
		case i < 0:
			s.fault(hard.nameOf(name), "no limit of the quota "+quote(name)+" has hard",
				"remove it, or write hard beside a limit of the plan")
		case slices.ContainsFunc(own[i+1:], hasHard):
			s.fault(hard.nameOf(name), "several limits of the quota "+quote(name)+" have hard",
				"write limits of the customer's own, each with its hard")
		case n < own[i].Policy.Limit.Count:
			s.fault(v, fmt.Sprintf("%d is less than the included units of %s", n, own[i].Policy.Limit),
				fmt.Sprintf("use at least %d", own[i].Policy.Limit.Count))
		case n > own[i].Hard:
			s.fault(v, fmt.Sprintf("%d is more than the hard limit of %d", n, own[i].Hard),
				fmt.Sprintf("use at most %d, or write limits with a higher hard", own[i].Hard))
		default:
			customer.Spending = append(customer.Spending, guard.Spending{Quota: name, Hard: n})
		}
	}
}

func quotaOf(all []guard.QuotaLimits, name string) []guard.QuotaLimit {
	for i := range all {
		if all[i].Quota == name {
			return all[i].Limits
		}
	}
	return nil
}

// customerCalendar reads where the calendar windows of a customer begin, if not as those of its plan.
func (*quotaReading) customerCalendar(s *section, customer *guard.Customer, plan *guard.Plan) {
	base := calendar.Default()
	if plan != nil && plan.Calendar.Zone != nil {
		base = plan.Calendar
	}
	own := base
	s.calendarFields(&own)
	if own.Zone.String() != base.Zone.String() || own.WeekStarts != base.WeekStarts || own.MonthStarts != base.MonthStarts {
		customer.Calendar = &own
	}
}

// note reads the note, which people see.
func (*quotaReading) note(s *section, customer *guard.Customer) {
	s.outline.field(s.declare("note", field.Taken, "A text for people; check --explain shows it.")).text("", "", 0, maxNote)
	v, ok := s.textOf("note", &customer.Note)
	switch {
	case !ok:
	case len(customer.Note) > maxNote:
		s.fault(v, fmt.Sprintf("is %d bytes long", len(customer.Note)), fmt.Sprintf("use at most %d", maxNote))
	case !utf8.ValidString(customer.Note) || strings.ContainsFunc(customer.Note, func(c rune) bool { return !unicode.IsPrint(c) }):
		s.fault(v, "has characters that cannot be printed", "write one line of text")
	}
}

// raise reads quotas that replace others for a time.
func (q *quotaReading) raise(s *section, customer *guard.Customer, after guard.After) {
	raise := s.sub(s.declare("raise", field.Taken, "Limits of quotas until a time, in place of all others."),
		"{limits: "+quotasExample+", until: 2030-01-31}")
	if raise.self.node == nil && s.outline == nil {
		return
	}
	if s.has("raise") || s.outline != nil {
		raise.required("limits", "write the limits until then, like limits: "+quotasExample)
		raise.required("until", "write when the raise ends, like until: 2030-01-31")
	}
	raise.declare("limits", field.Taken, "Limits of quotas until then.")
	r := &guard.Raise{Quotas: q.limitsOf(raise, "limits", after)}
	raise.declare("until", field.Taken, "When the raise ends: a date, which includes that day in UTC, or a time.")
	raise.ending(&r.Until)
	raise.end()
	if r.Until > 0 {
		customer.Raise = r
	}
}

// ending reads until, when a raise or an override ends.
func (s *section) ending(into *headgate.Instant) {
	s.outline.field("until").written("", untilPattern)
	text := ""
	v, ok := s.textOf("until", &text)
	if !ok {
		return
	}
	at, err := ParseUntil(text)
	switch {
	case err != nil:
		s.fault(v, quote(text)+" is no date", untilFix)
	case at.Before(time.Unix(1, 0)) || at.Year() > lastYear:
		s.fault(v, quote(text)+" is out of range", "use a year from 1970 to "+fmt.Sprint(lastYear))
	default:
		*into = headgate.Instant(at.UnixNano())
	}
}

// lastYear is the last whole year that fits into nanoseconds since 1970.
const lastYear = 2261

// nameCustomers gives the customers the names under which rules find them.
func (q *quotaReading) nameCustomers(all *section, c *Config) {
	values := make([]string, len(c.Customers))
	for i := range c.Customers {
		values[i] = c.Customers[i].Name
		if len(values[i]) > maxOverrideValue {
			all.fault(all.nameOf(values[i]), fmt.Sprintf("a value has %d bytes", len(values[i])),
				fmt.Sprintf("use at most %d", maxOverrideValue))
			return
		}
	}
	for _, part := range q.parts {
		_, err := rule.NewOverrides(part, values)
		for _, err := range check.Unjoin(err) {
			if bad, found := errortype.As[*rule.OverrideError](err); found {
				all.fault(all.nameOf(values[bad.Index]), "for key "+part.String()+": "+bad.Problem, bad.Fix)
			}
		}
	}
	if all.blamed(customersName) || len(q.parts) == 0 {
		return
	}
	for i := range c.Customers {
		customer := &c.Customers[i]
		customer.Name, _ = rule.CustomerName(q.parts[0], values[i])
		for _, part := range q.parts[1:] {
			if other, _ := rule.CustomerName(part, values[i]); other != customer.Name {
				all.fault(all.nameOf(values[i]), fmt.Sprintf("is %s by key %s, and %s by key %s", customer.Name, q.parts[0], other, part),
					"let the rules of quotas find customers by parts of one form")
			}
		}
	}
}
