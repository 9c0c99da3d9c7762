package guard_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/store/storetest"
)

// units gives the units of the calendar.
func units() []headgate.CalendarUnit {
	return []headgate.CalendarUnit{headgate.Day, headgate.Week, headgate.Month, headgate.Year}
}

// everyNumber gives 251 lengths. Their numbers are all that lengths can have.
func everyNumber() []time.Duration {
	all := make([]time.Duration, 0, 251)
	for n := range 251 {
		all = append(all, time.Duration(n+1)*time.Second)
	}
	return all
}

// TestUnitsHaveNumbersOfTheirOwn: no length has the number of a calendar unit, and usual lengths have the
// remainder by 251, so that stored counts are kept.
func TestUnitsHaveNumbersOfTheirOwn(t *testing.T) {
	reserved := map[uint8]string{253: "slots", 254: "hard", 255: "ban"}
	for _, unit := range units() {
		n := guard.LimitNumber(calendarLimit(1, unit))
		if other, found := reserved[n]; found {
			t.Errorf("%s has the number %d of %s", unit, n, other)
		}
		reserved[n] = unit.String()
	}
	for _, per := range everyNumber() {
		n := guard.LimitNumber(headgate.Limit{Count: 1, Per: per})
		if other, found := reserved[n]; found {
			t.Errorf("%s has the number %d of %s", per, n, other)
		}
		if per <= time.Minute && n != uint8(per%251) {
			t.Errorf("%s has the number %d, want %d", per, n, per%251)
		}
	}
}

// TestUnitsKeepTheirCounts: a reload adds a second limit to a rule, of any length, and another removes it. Units that
// were taken from the day, week, month or year stay used.
func TestUnitsKeepTheirCounts(t *testing.T) {
	for _, unit := range units() {
		clock := storetest.NewClock()
		store := memoryAt(t, clock)
		alone := monthly(t, calendarLimit(1000, unit))
		g := calendarGuard(t, 0, store, clock, alone)
		used := int64(0)
		take := func(with string) {
			t.Helper()
			used++
			if r := decide(t, g, request("/a", "x")).Results[0]; r.Decision.Remaining != 1000-used {
				t.Fatalf("%s %s: %d left, want %d", unit, with, r.Decision.Remaining, 1000-used)
			}
		}
		take("alone")
		for _, per := range everyNumber() {
			both := monthly(t, calendarLimit(1000, unit), headgate.Limit{Count: 5000, Per: per})
			for _, rule := range []guard.Rule{both, alone} {
				if err := g.Reload(guard.Config{Store: store, Clock: clock.Now, Rules: []guard.Rule{rule}}); err != nil {
					t.Fatal(err)
				}
				take("with " + per.String())
			}
		}
	}
}

// TestPlansKeepTheMonth: a customer moves to a plan with a month and 5 hours, and back. The month stays used.
func TestPlansKeepTheMonth(t *testing.T) {
	month := guard.QuotaLimit{Policy: headgate.Policy{Algorithm: headgate.FixedWindow, Limit: calendarLimit(200, headgate.Month)}}
	plans := []guard.Plan{
		{Name: "a", Calendar: calendar.Default(), Quotas: calls(month)},
		{Name: "b", Calendar: calendar.Default(), Quotas: calls(month, included(50, 5*time.Hour))},
	}
	clock := storetest.NewClock()
	c := guard.Config{Store: memoryAt(t, clock), Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")}}
	c.Quotas = quotas(t, plans, guard.Customer{Name: "x", Plan: "a"})
	g, _ := newGuard(t, c)
	for n, plan := range []string{"a", "b", "a", "b"} {
		c.Quotas = quotas(t, plans, guard.Customer{Name: "x", Plan: plan})
		if err := g.Reload(c); err != nil {
			t.Fatal(err)
		}
		if d := decide(t, g, request("/a", "x")).Results[0].Decision; d.Remaining != int64(199-n) {
			t.Errorf("request %d, in plan %s: %d left of the month, want %d", n+1, plan, d.Remaining, 199-n)
		}
	}
}
