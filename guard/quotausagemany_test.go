package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// countingBy is counting by another part.
func countingBy(t *testing.T, name, path, part, quota string) guard.Rule {
	t.Helper()
	r := counting(t, name, path)
	by, err := rule.ParsePart(part)
	if err != nil {
		t.Fatal(err)
	}
	r.Key, r.Quota = []rule.Part{by}, quota
	return r
}

// TestUsageByOtherParts: a value is found by each rule that can have it, in the spelling of the rule.
func TestUsageByOtherParts(t *testing.T) {
	plan := guard.Plan{Name: "p", Quotas: []guard.QuotaLimits{
		{Quota: "addresses", Limits: []guard.QuotaLimit{included(9, day)}}, {Quota: "calls", Limits: []guard.QuotaLimit{included(9, day)}},
	}}
	g, _ := newGuard(t, guard.Config{
		Rules: []guard.Rule{
			countingBy(t, "a", "/a", "ip", "addresses"), countingBy(t, "b", "/b", "host", "calls"),
			countingBy(t, "c", "/c", "header:X-Client-Id", "calls"),
		},
		Quotas: quotas(t, []guard.Plan{plan}),
	})
	decide(t, g, request("/a", "x"))
	decide(t, g, request("/b", "x"))
	decide(t, g, request("/c", "Shop.example"))
	decide(t, g, request("/c", "Shop.example"))
	for _, c := range []struct{ customer, want string }{
		{"192.0.2.7", "addresses 9/1d: 1, hard 9; calls 9/1d: 0, hard 9"},
		{"shop.example", "calls 9/1d: 1, hard 9"},
		{"SHOP.EXAMPLE", "calls 9/1d: 1, hard 9"},
		{"Shop.example", "calls 9/1d: 1, hard 9; calls 9/1d: 2, hard 9"},
		{"not used", "calls 9/1d: 0, hard 9"},
	} {
		if got := usage(t, g, c.customer); got != c.want {
			t.Errorf("%s: got %s, want %s", c.customer, got, c.want)
		}
	}
	if _, err := g.ResetUsage(t.Context(), "Shop.example", "calls", ""); err != nil || usage(t, g, "Shop.example") != "calls 9/1d: 0, hard 9" {
		t.Errorf("after the reset: %s, %v", usage(t, g, "Shop.example"), err)
	}
}

// grouped counts the calls of a store, and the Ops of each group.
type grouped struct {
	*memory.Store

	calls, largest int
}

func (s *grouped) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	s.calls++
	n := 0
	for i := range ops {
		if n++; i > 0 && ops[i].Group != ops[i-1].Group {
			n = 1
		}
		s.largest = max(s.largest, n)
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// TestUsageOfMany: 600 customers with two limits are 5 calls of the store, and each group has the Ops of one customer. Each result is
// that of Usage.
func TestUsageOfMany(t *testing.T) {
	clock := storetest.NewClock()
	inner, err := memory.New(memory.Config{MaxMemory: 4 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	store := &grouped{Store: inner}
	g, _ := newGuard(t, guard.Config{
		Store: store, Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")},
		Quotas: quotas(t, []guard.Plan{{Name: "p", Quotas: calls(included(9, day), included(20, 30*day))}, {Name: "off", Mode: guard.Off}},
			guard.Customer{Name: "off", Plan: "off"}),
	})
	names := []string{"off"}
	for i := range 600 {
		names = append(names, fmt.Sprint("c", i))
		for range i % 4 {
			decide(t, g, request("/a", names[len(names)-1]))
		}
	}
	store.calls, store.largest = 0, 0
	all, err := g.UsageOfMany(t.Context(), names)
	if err != nil || store.calls != 5 || store.largest != 2 {
		t.Errorf("%d calls with %d Ops in a group, %v, want 5 and 2", store.calls, store.largest, err)
	}
	for i, name := range names[1:] {
		if got, want := usageText(all[i+1]), usage(t, g, name); got != want {
			t.Fatalf("%s: got %s, want %s", name, got, want)
		}
	}
	if all[0] != nil {
		t.Errorf("without a quota: %v", all[0])
	}
}

// TestResetIsMetered: bills follow the longest fixed window.
func TestResetIsMetered(t *testing.T) {
	meter := newLedger()
	plan := guard.Plan{Name: "paid", After: guard.AfterMeter, Quotas: calls(included(20, day), upTo(3, 20))}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{plan}), Meter: meter})
	take := func(n int) {
		for range n {
			decide(t, g, request("/a", "x"))
		}
	}
	take(5)
	clock.Advance(day)
	take(1)
	meter.last = ""
	for _, c := range []struct{ period, want string }{
		{"1d", ""},
		{"30d", "x/calls -6 -3 0;"},
		{"", ""},
	} {
		if _, err := g.ResetUsage(t.Context(), "x", "calls", c.period); err != nil {
			t.Fatal(err)
		}
		meter.want(t, "period "+c.period, c.want)
	}
	if meter.admitted["x"] != 0 || meter.metered["x"] != 0 {
		t.Errorf("the meter has %d units, %d metered, want none", meter.admitted["x"], meter.metered["x"])
	}
}

// TestResetAtTheEndOfAMonth: a reset that the store decides in the next window gives nothing back there.
func TestResetAtTheEndOfAMonth(t *testing.T) {
	clock := storetest.NewClock()
	inner, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	store, meter := &interrupted{Store: inner}, newLedger()
	month := included(10, 0)
	month.Policy.Limit.Calendar = headgate.Month
	g, _ := newGuard(t, guard.Config{
		Store: store, Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")}, Meter: meter,
		Quotas: quotas(t, []guard.Plan{{Name: "p", Quotas: calls(month), Calendar: calendar.Default()}}),
	})
	for range 4 {
		decide(t, g, request("/a", "x"))
	}
	store.before = func() {
		clock.Advance(31 * day)
		for range 3 {
			decide(t, g, request("/a", "x"))
		}
		meter.last = ""
	}
	before, err := g.ResetUsage(t.Context(), "x", "", "")
	var outside *headgate.EdgeError
	if !errors.As(err, &outside) || len(before) != 1 || before[0].Used != 4 {
		t.Errorf("got %s, %v, want the 4 units that were read and an *EdgeError", usageText(before), err)
	}
	if got := usage(t, g, "x"); got != "calls 10/month: 3, hard 10" {
		t.Errorf("after the reset: %s, want the 3 units of the next month", got)
	}
	meter.want(t, "a failed reset", "")
}

// TestPresentWindows: the first start and the last end, of all limits.
func TestPresentWindows(t *testing.T) {
	clock := storetest.NewClock()
	g, _ := newGuard(t, guard.Config{
		Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(1, 2), {Name: "short", Quotas: calls(included(1, time.Hour))}}),
	})
	now := clock.Now()
	first, last, found := g.PresentWindows()
	if start := now - now%headgate.Instant(30*day); !found || first != start || last != start+headgate.Instant(30*day) {
		t.Errorf("got %s to %s, %v", first.Time(), last.Time(), found)
	}
}
