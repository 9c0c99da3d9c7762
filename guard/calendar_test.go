package guard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// monthly is a rule with limits of the calendar, in a zone 9 hours east of UTC.
func monthly(tb testing.TB, limits ...headgate.Limit) guard.Rule {
	tb.Helper()
	r := byClient(tb, "quota", "/a", limits...)
	r.Calendar = calendar.Settings{Zone: time.FixedZone("east", 9*3600), WeekStarts: time.Monday, MonthStarts: 1}
	return r
}

func calendarLimit(count int64, unit headgate.CalendarUnit) headgate.Limit {
	return headgate.Limit{Count: count, Calendar: unit}
}

// calendarGuard makes a guard whose clock is ahead of its store's by skew.
func calendarGuard(t *testing.T, skew time.Duration, store headgate.Store, clock *storetest.Clock, rules ...guard.Rule) *guard.Guard {
	t.Helper()
	g, err := guard.New(guard.Config{
		Store: store, Rules: rules, Clock: func() headgate.Instant { return clock.Now().Add(skew) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func memoryAt(t *testing.T, clock *storetest.Clock) *memory.Store {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// until moves the clock to a time in UTC.
func until(t *testing.T, clock *storetest.Clock, text string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(headgate.Instant(at.UnixNano()).Sub(clock.Now()))
}

// TestCalendarRule: a month begins in the zone of the rule, and w is the length of the present
// window.
func TestCalendarRule(t *testing.T) {
	clock := storetest.NewClock()
	g := calendarGuard(t, 0, memoryAt(t, clock), clock, monthly(t, calendarLimit(2, headgate.Month)))
	for _, row := range []struct {
		at      string
		verdict headgate.Verdict
		policy  string
	}{
		{"2024-01-31T14:59:00Z", headgate.Allow, `"quota";q=2;w=2678400`},
		{"2024-01-31T14:59:01Z", headgate.Allow, `"quota";q=2;w=2678400`},
		{"2024-01-31T14:59:59Z", headgate.Deny, `"quota";q=2;w=2678400`},
		{"2024-01-31T15:00:00Z", headgate.Allow, `"quota";q=2;w=2505600`}, // February of a leap year has 29 days.
		{"2024-03-10T00:00:00Z", headgate.Allow, `"quota";q=2;w=2678400`},
	} {
		until(t, clock, row.at)
		a := decide(t, g, request("/a", "x"))
		if a.Verdict != row.verdict {
			t.Errorf("%s: %s, want %s", row.at, a.Verdict, row.verdict)
		}
		if got := string(fields.AppendPolicy(nil, a.Closest())); got != row.policy {
			t.Errorf("%s: %s, want %s", row.at, got, row.policy)
		}
	}
}

// TestClocksOfInstances: instances whose clocks differ by 30 s from the store's decide alike, at
// every second around an edge.
func TestClocksOfInstances(t *testing.T) {
	clock := storetest.NewClock()
	store := memoryAt(t, clock)
	var guards []*guard.Guard
	for _, skew := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
		guards = append(guards, calendarGuard(t, skew, store, clock, monthly(t, calendarLimit(1000, headgate.Day))))
	}
	edge := "2024-01-02T15:00:00Z"
	until(t, clock, edge)
	midnight := clock.Now()
	clock.Advance(-40 * time.Second)
	used := int64(0)
	for range 80 {
		if clock.Now() == midnight {
			used = 0
		}
		for i, g := range guards {
			used++
			r := decide(t, g, request("/a", "x")).Results[0]
			if r.Decision.Remaining != 1000-used || r.Period() != 24*time.Hour {
				t.Fatalf("instance %d at %s: %d left, and a day of %s; want %d", i, clock.Now().Time(), r.Decision.Remaining, r.Period(), 1000-used)
			}
		}
		clock.Advance(time.Second)
	}
}

// TestWrongClock: an instance whose clock is two days wrong cannot decide about days. The error
// states the difference, and the fallback decides.
func TestWrongClock(t *testing.T) {
	clock := storetest.NewClock()
	g := calendarGuard(t, 60*time.Hour, memoryAt(t, clock), clock, monthly(t, calendarLimit(5, headgate.Day)))
	a := decide(t, g, request("/a", "x"))
	edge, found := errortype.As[*headgate.EdgeError](a.StoreError)
	if a.Closest().Decision.Reason != headgate.StoreUnavailable || !found || !strings.Contains(edge.Error(), "27h0m0s before the window") {
		t.Errorf("a wrong clock: %s, %v", a.Closest().Decision.Reason, a.StoreError)
	}
}

// TestCalendarHotPath: a decision under calendar limits allocates nothing.
func TestCalendarHotPath(t *testing.T) {
	clock := storetest.NewClock()
	rule := monthly(t, calendarLimit(1<<40, headgate.Month), calendarLimit(1<<40, headgate.Day))
	g := calendarGuard(t, 0, memoryAt(t, clock), clock, rule)
	req, a := request("/a", "x"), new(guard.Answer)
	if race.On { // The pool of the store in memory drops its content there.
		return
	}
	if n := testing.AllocsPerRun(200, func() { _ = g.Decide(t.Context(), req, a) }); n != 0 {
		t.Errorf("a decision makes %v allocations", n)
	}
}

// TestCalendarWithTheRest: bans, hard limits, settling and the local fallback work with calendar
// limits.
func TestCalendarWithTheRest(t *testing.T) {
	clock := storetest.NewClock()
	banned := monthly(t, calendarLimit(5, headgate.Month))
	banned.Ban = guard.Ban{For: time.Hour}
	if _, err := guard.New(guard.Config{Store: memoryAt(t, clock), Rules: []guard.Rule{banned}}); err == nil ||
		!strings.Contains(err.Error(), "write ban.after, such as 100/1d") {
		t.Errorf("a ban that counts by a month: %v", err)
	}
	r := monthly(t, calendarLimit(2, headgate.Month))
	r.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Degraded", Value: "1", Hard: headgate.Policy{Algorithm: headgate.FixedWindow, Limit: calendarLimit(3, headgate.Month)}}
	g := calendarGuard(t, 0, memoryAt(t, clock), clock, r)
	for i, want := range []headgate.Reason{headgate.WithinLimit, headgate.WithinLimit, headgate.Degraded, headgate.OverLimit} {
		if got := decide(t, g, request("/a", "x")).Closest().Decision.Reason; got != want {
			t.Errorf("request %d of a month of 2, and 3 at most: %s, want %s", i, got, want)
		}
	}
	local := monthly(t, calendarLimit(4, headgate.Month))
	local.Fallback = guard.FallbackLocal
	g, err := guard.New(guard.Config{
		Store: away{}, Local: memoryAt(t, clock), LocalShare: 50, Rules: []guard.Rule{local}, Clock: clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []headgate.Verdict{headgate.Allow, headgate.Allow, headgate.Deny} {
		if a := decide(t, g, request("/a", "x")); a.Verdict != want || a.Closest().Period() != limitOfJanuary {
			t.Errorf("request %d of a part of 2: %s in a month of %s, want %s", i, a.Verdict, a.Closest().Period(), want)
		}
	}
}

const limitOfJanuary = 31 * 24 * time.Hour

// away is a store that never answers.
type away struct{ headgate.Store }

func (away) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	_, err := limit.Compile(p)
	return 1, err
}

func (away) Release(headgate.PolicyID) {}

func (away) Apply(context.Context, []headgate.Op, []headgate.Decision) error {
	return headgate.ErrUnavailable
}

// BenchmarkCalendar compares a month of the calendar with one of 30 days.
func BenchmarkCalendar(b *testing.B) {
	for name, l := range map[string]headgate.Limit{"month": calendarLimit(1<<50, headgate.Month), "30d": {Count: 1 << 50, Per: 30 * 24 * time.Hour}} {
		b.Run(name, func(b *testing.B) {
			store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}
			g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{monthly(b, l)}})
			if err != nil {
				b.Fatal(err)
			}
			req, a := request("/a", "x"), new(guard.Answer)
			for b.Loop() {
				if err := g.Decide(b.Context(), req, a); err != nil || a.Verdict != headgate.Allow {
					b.Fatal(err, a.Verdict)
				}
			}
		})
	}
}

// TestCalendarLeaf: a tree of a decision server counts by months in UTC. The memory of refusals leaves
// these limits to the store, because their windows have no fixed length.
func TestCalendarLeaf(t *testing.T) {
	clock := storetest.NewClock()
	leaf := &guard.Leaf{Policies: []headgate.Policy{guard.LeafPolicy(headgate.FixedWindow, calendarLimit(2, headgate.Month))}}
	g, err := guard.New(guard.Config{
		Store: memoryAt(t, clock), Clock: clock.Now, RefusalsMemory: 1 << 20,
		Domains: []guard.Domain{{Name: "shop", Descriptors: []guard.Descriptor{{Key: "user", Leaf: leaf}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, clock, "2024-01-31T23:59:59Z")
	for i, want := range []headgate.Verdict{headgate.Allow, headgate.Allow, headgate.Deny, headgate.Deny, headgate.Allow} {
		if i == 4 {
			clock.Advance(time.Second)
		}
		requests := []headgate.Request{{Domain: "shop", Descriptors: headgate.Descriptors{{Name: "user", Value: "a"}}, Cost: 1}}
		answers := make([]guard.Answer, 1)
		g.DecideDescriptors(t.Context(), requests, answers, false)
		if r := &answers[0].Results[0]; answers[0].Verdict != want || r.Recalled {
			t.Errorf("request %d: %s, from the memory %v, want %s from the store", i, answers[0].Verdict, r.Recalled, want)
		}
	}
}
