package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// usage describes what a customer has used.
func usage(t *testing.T, g *guard.Guard, customer string) string {
	t.Helper()
	all, err := g.Usage(t.Context(), customer)
	if err != nil {
		t.Fatal(err)
	}
	return usageText(all)
}

func usageText(all []guard.QuotaUse) string {
	var lines []string
	for i := range all {
		u := &all[i]
		lines = append(lines, fmt.Sprintf("%s %s: %d, hard %d", u.Quota, u.Limit, u.Used, u.Hard))
	}
	return strings.Join(lines, "; ")
}

// TestStoryOfACustomersUsage: the table reads as the month of a customer.
func TestStoryOfACustomersUsage(t *testing.T) {
	burst := included(2, time.Second)
	burst.Policy.Algorithm = headgate.TokenBucket
	plan := guard.Plan{
		Name: "paid", After: guard.AfterMeter, Calendar: calendar.Default(),
		Quotas: []guard.QuotaLimits{
			{Quota: "calls", Limits: []guard.QuotaLimit{upTo(3, 9), burst}},
			{Quota: "unused", Limits: []guard.QuotaLimit{included(1, day)}},
		},
	}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{plan})})
	take := func(n int) {
		for range n {
			decide(t, g, request("/a", "x"))
			clock.Advance(time.Second)
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"nothing was used", func() {}, "calls 3/30d: 0, hard 9; calls 2/1s: 0, hard 2"},
		{"two requests", func() { take(2) }, "calls 3/30d: 2, hard 9; calls 2/1s: 0, hard 2"},
		{"one more, just now", func() { decide(t, g, request("/a", "x")) }, "calls 3/30d: 3, hard 9; calls 2/1s: 1, hard 2"},
		{"two metered ones", func() { clock.Advance(time.Second); take(2) }, "calls 3/30d: 5, hard 9; calls 2/1s: 0, hard 2"},
		{"a reset", func() {
			before, err := g.ResetUsage(t.Context(), "x", "calls", "30d")
			if got := usageText(before); err != nil || got != "calls 3/30d: 5, hard 9" {
				t.Errorf("the reset gave %s, %v", got, err)
			}
		}, "calls 3/30d: 0, hard 9; calls 2/1s: 0, hard 2"},
		{"requests after the reset", func() { take(9) }, "calls 3/30d: 9, hard 9; calls 2/1s: 0, hard 2"},
		{"the next period", func() { clock.Advance(30 * day) }, "calls 3/30d: 0, hard 9; calls 2/1s: 0, hard 2"},
	} {
		step.do()
		for range 2 { // Usage takes no unit.
			if got := usage(t, g, "x"); got != step.want {
				t.Errorf("%s: got %s, want %s", step.what, got, step.want)
			}
		}
	}
	if got := usage(t, g, "other"); got != "calls 3/30d: 0, hard 9; calls 2/1s: 0, hard 2" {
		t.Errorf("another customer: %s", got)
	}
}

func TestUsageFaults(t *testing.T) {
	plan := guard.Plan{Name: "p", Quotas: calls(included(1, day), included(9, 30*day))}
	off := guard.Plan{Name: "off", Mode: guard.Off}
	g, _ := newGuard(t, guard.Config{
		Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{plan, off}, guard.Customer{Name: "o", Plan: "off"}),
	})
	for _, c := range []struct{ customer, quota, period, want string }{
		{"x", "cals", "", `the customer has no limit of the quota "cals": use one of calls`},
		{"x", "calls", "7d", `the customer has no limit of the period "7d": use one of 1d, 30d`},
		{"o", "", "", "rules count no quota of this customer's plan"},
	} {
		_, err := g.ResetUsage(t.Context(), c.customer, c.quota, c.period)
		if unknown := new(guard.UnknownQuotaError); !errors.As(err, &unknown) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
	var bad *rule.OverrideError
	if _, err := g.Usage(t.Context(), ""); !errors.As(err, &bad) {
		t.Errorf("without a name: got %v, want an *OverrideError", err)
	}
	if _, err := new(guard.Guard).Usage(t.Context(), "x"); !errors.Is(err, headgate.ErrNotMade) {
		t.Errorf("without New: got %v", err)
	}
}

// TestUsageWindows: what is said of the window of each algorithm.
func TestUsageWindows(t *testing.T) {
	month := included(5, 0)
	month.Policy.Limit.Calendar = headgate.Month
	sliding := included(5, time.Hour)
	sliding.Policy.Algorithm, sliding.Policy.SubWindows = headgate.SlidingWindow, 60
	bucket := included(5, time.Minute)
	bucket.Policy.Algorithm = headgate.TokenBucket
	plan := guard.Plan{Name: "p", Quotas: calls(month, sliding, bucket, included(5, day)), Calendar: calendar.Default()}
	clock := storetest.NewClock()
	store, err := memory.New(memory.Config{MaxMemory: 4 << 20, BlockShare: 50, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{
		Store: store, Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{plan}),
	})
	if err != nil {
		t.Fatal(err)
	}
	decide(t, g, request("/a", "x"))
	all, err := g.Usage(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Now()
	for i, want := range []struct{ start, end time.Time }{
		{time.Date(now.Time().Year(), now.Time().Month(), 1, 0, 0, 0, 0, time.UTC), time.Date(now.Time().Year(), now.Time().Month()+1, 1, 0, 0, 0, 0, time.UTC)},
		{now.Add(-time.Hour).Time(), now.Time()},
		{time.Unix(0, 0).UTC(), time.Unix(0, 0).UTC()},
		{now.Time().Truncate(day), now.Time().Truncate(day).Add(day)},
	} {
		if u := &all[i]; !u.Start.Time().Equal(want.start) || !u.End.Time().Equal(want.end) || u.Used != 1 || u.At != now {
			t.Errorf("%s of %s: got %s to %s, used %d at %s, want %s to %s", u.Limit, u.Algorithm, u.Start.Time(), u.End.Time(), u.Used,
				u.At.Time(), want.start, want.end)
		}
	}
	before, err := g.ResetUsage(t.Context(), "x", "", "")
	if err != nil || len(before) != 4 {
		t.Fatalf("got %d limits, %v, want 4", len(before), err)
	}
	after, err := g.Usage(t.Context(), "x")
	for i := range after {
		if after[i].Used != 0 || before[i].Used != 1 {
			t.Errorf("%s: used %d before and %d after the reset, want 1 and 0; %v", after[i].Limit, before[i].Used, after[i].Used, err)
		}
	}
}

// interrupted is a store in which other requests come before each Refund.
type interrupted struct {
	*memory.Store

	before func()
}

// Apply implements headgate.Store.
func (s *interrupted) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	if s.before != nil && ops[0].Kind == headgate.Refund {
		s.before()
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// TestResetBetweenRequests: the reset gives back what it has read, and units that were taken since stay counted.
func TestResetBetweenRequests(t *testing.T) {
	clock := storetest.NewClock()
	inner, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	store := &interrupted{Store: inner}
	g, _ := newGuard(t, guard.Config{
		Store: store, Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(10, 20)}),
	})
	take := func(n int) {
		for range n {
			decide(t, g, request("/a", "x"))
		}
	}
	take(12)
	store.before = func() { take(3) }
	before, err := g.ResetUsage(t.Context(), "x", "", "")
	if got := usageText(before); err != nil || got != "calls 10/30d: 12, hard 20" {
		t.Errorf("the reset gave %s, %v", got, err)
	}
	if got := usage(t, g, "x"); got != "calls 10/30d: 3, hard 20" {
		t.Errorf("after the reset: %s, want the 3 units that were taken meanwhile", got)
	}
}

// TestUsageAboveALoweredLimit: the number is exact, and a reset gives all back.
func TestUsageAboveALoweredLimit(t *testing.T) {
	plans := []guard.Plan{metering(10, 20)}
	config := guard.Config{Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, plans)}
	g, _ := newGuard(t, config)
	for range 12 {
		decide(t, g, request("/a", "x"))
	}
	config.Store, config.Quotas = g.Store(), quotas(t, []guard.Plan{metering(3, 5)})
	if err := g.Reload(config); err != nil {
		t.Fatal(err)
	}
	if got := usage(t, g, "x"); got != "calls 3/30d: 12, hard 5" {
		t.Errorf("under the lowered limit: %s", got)
	}
	if _, err := g.ResetUsage(t.Context(), "x", "", ""); err != nil || usage(t, g, "x") != "calls 3/30d: 0, hard 5" {
		t.Errorf("after the reset: %s, %v", usage(t, g, "x"), err)
	}
}

// TestResetLosesNoUnit: while requests take units under two versions of the limits, each unit is either given back
// by a reset, which says so, or is still counted.
func TestResetLosesNoUnit(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(10, 1<<40)})})
	other, err := guard.New(guard.Config{
		Store: g.Store(), Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(3, 1<<30)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var taken, reset atomic.Int64
	var running sync.WaitGroup
	for n, by := range []*guard.Guard{g, other} {
		running.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 0))
			for range 300 {
				req := request("/a", "x")
				req.Cost = 1 + r.Int64N(5)
				var a guard.Answer
				if err := by.Decide(t.Context(), req, &a); err != nil || a.Verdict != headgate.Allow {
					t.Errorf("got %v, %v", a.Verdict, err)
				}
				taken.Add(req.Cost)
			}
		})
	}
	for _, by := range []*guard.Guard{g, other} { // Of two resets at once, each says what it has given back itself.
		running.Go(func() {
			for range 100 {
				before, err := by.ResetUsage(t.Context(), "x", "", "")
				if err != nil {
					t.Error(err)
					return
				}
				reset.Add(before[0].Used)
			}
		})
	}
	running.Wait()
	all, err := g.Usage(t.Context(), "x")
	if err != nil || all[0].Used+reset.Load() != taken.Load() {
		t.Errorf("%d units are counted and %d were given back, want %d together; %v", all[0].Used, reset.Load(), taken.Load(), err)
	}
}

// TestUsageAfterAChangedCalendar: a customer's month gets another first day, which lies in the
// past. The units count, and the usage says that they can be from before the month.
func TestUsageAfterAChangedCalendar(t *testing.T) {
	month := guard.QuotaLimit{Policy: headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 3, Calendar: headgate.Month}}}
	plan := guard.Plan{Name: "p", Quotas: calls(month), Calendar: calendar.Default()}
	clock := storetest.NewClock()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Date(2031, time.November, 29, 10, 0, 0, 0, time.UTC).Sub(clock.Now().Time()))
	late := calendar.Settings{Zone: time.UTC, WeekStarts: time.Monday, MonthStarts: 29}
	for i, row := range []struct {
		own  *calendar.Settings
		take int
		last string
		want bool
	}{
		{nil, 3, "allow within_limit 0/3 metered 0", false},
		{&late, 1, "deny over_limit 0/3 metered 0", true},
		{nil, 1, "deny over_limit 0/3 metered 0", false},
	} {
		g, _ := newGuard(t, guard.Config{
			Store: store, Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")},
			Quotas: quotas(t, []guard.Plan{plan}, guard.Customer{Name: "x", Calendar: row.own}),
		})
		got := ""
		for range row.take {
			got = answerOf(decide(t, g, request("/a", "x")))
		}
		all, err := g.Usage(t.Context(), "x")
		if err != nil || got != row.last || all[0].Used != 3 || all[0].Carried != row.want {
			t.Errorf("settings %d: got %s, and %+v, %v; want %s, 3 used, and carried %v", i, got, all, err, row.last, row.want)
		}
	}
}
