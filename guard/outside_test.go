package guard_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// skewed is a guard with a plain limit of 5 a minute and a limit of 3 a month for one path. The clock of its store is
// ahead by skew.
type skewed struct {
	guard *guard.Guard
	store *shaky
	clock *storetest.Clock
	skew  time.Duration
}

func newSkewed(t *testing.T, fallback guard.Fallback) *skewed {
	t.Helper()
	s := &skewed{clock: storetest.NewClock(), skew: 100 * 24 * time.Hour}
	s.store = &shaky{Store: memoryAt(t, s.clock)}
	month := monthly(t, calendarLimit(3, headgate.Month))
	month.Fallback = fallback
	now := func() headgate.Instant { return s.clock.Now().Add(-s.skew) }
	local, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{
		Store: s.store, Local: local, LocalShare: 100, Rules: []guard.Rule{byClient(t, "plain", "/a", perMinute(5)), month}, Clock: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.guard = g
	return s
}

// expect decides a request, and compares the verdict and what remains of the plain limit.
func (s *skewed) expect(t *testing.T, what string, a *guard.Answer, verdict headgate.Verdict, remaining int64, outside bool) {
	t.Helper()
	plain, month := &a.Results[0], &a.Results[1]
	_, edge := errortype.As[*headgate.EdgeError](a.StoreError)
	if a.Verdict != verdict || plain.Decision.Remaining != remaining || plain.Fallback || month.Fallback != outside || edge != outside {
		t.Errorf("%s: %s, plain %+v, month %+v, error %v; want %s, and %d of the plain limit", what, a.Verdict, plain.Decision, month.Decision,
			a.StoreError, verdict, remaining)
	}
}

// TestOutside: the store's clock is 100 days ahead. The fallback decides the monthly limit, and the store the other
// limit of the same request. After the clocks were set, the store decides both at once.
func TestOutside(t *testing.T) {
	s := newSkewed(t, guard.FallbackAllow)
	for i := range int64(5) {
		s.expect(t, "allowed", decide(t, s.guard, request("/a", "x")), headgate.Allow, 4-i, true)
	}
	s.expect(t, "refused by the plain limit", decide(t, s.guard, request("/a", "x")), headgate.Deny, 0, true)
	if s.store.calls != 12 {
		t.Errorf("%d calls for 6 requests, want 12: one more for each", s.store.calls)
	}
	s.skew = 0
	a := decide(t, s.guard, request("/a", "y"))
	s.expect(t, "with the right clock", a, headgate.Allow, 4, false)
	s.expect(t, "from then on", decide(t, s.guard, request("/a", "y")), headgate.Allow, 3, false)
	if d := a.Results[1].Decision; d.Remaining != 2 {
		t.Errorf("the month has %d left, want 2: nothing was counted without the store's clock", d.Remaining)
	}
}

// twoNodes is a store with a node whose clock is ahead by 100 days. It has the keys of the client "far".
type twoNodes struct{ headgate.Store }

// Apply implements headgate.Store.
func (s *twoNodes) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	for i := range ops {
		if at := headgate.Instant(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()); ops[i].Edges != nil && strings.Contains(ops[i].Key, "far") {
			return undecided(decisions, &headgate.EdgeError{At: at, Edges: *ops[i].Edges})
		}
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// undecided sets all decisions of a call that fails.
func undecided(decisions []headgate.Decision, err error) error {
	for i := range decisions {
		decisions[i] = headgate.Undecided()
	}
	return err
}

// TestOutsideOnOneNode: requests whose keys are on nodes with the right clock are decided there, whatever another node says.
func TestOutsideOnOneNode(t *testing.T) {
	clock := storetest.NewClock()
	month := monthly(t, calendarLimit(3, headgate.Month))
	month.Fallback = guard.FallbackAllow
	g := calendarGuard(t, 0, &twoNodes{memoryAt(t, clock)}, clock, month)
	for i := range int64(5) {
		if far := decide(t, g, request("/a", "far")); !far.Results[0].Fallback || far.Verdict != headgate.Allow {
			t.Errorf("request %d to the node with a wrong clock: %+v", i, far.Results[0].Decision)
		}
		near := decide(t, g, request("/a", "near"))
		if d := near.Results[0].Decision; near.Results[0].Fallback || (near.Verdict == headgate.Allow) != (i < 3) || d.Remaining != max(0, 2-i) {
			t.Errorf("request %d to the other node: %+v, %v", i, d, near.StoreError)
		}
	}
}

// TestOutsideOfDaysOnly: the store's clock is four days ahead. The fallback decides the limit of a day, and the store that of
// a month.
func TestOutsideOfDaysOnly(t *testing.T) {
	clock := storetest.NewClock()
	both := monthly(t, calendarLimit(100, headgate.Day), calendarLimit(3, headgate.Month))
	both.Fallback = guard.FallbackAllow
	g := calendarGuard(t, -4*24*time.Hour, memoryAt(t, clock), clock, both)
	for i := range int64(5) {
		a := decide(t, g, request("/a", "x"))
		day, month := &a.Results[0], &a.Results[1]
		if !day.Fallback || month.Fallback || (a.Verdict == headgate.Allow) != (i < 3) || month.Decision.Remaining != max(0, 2-i) {
			t.Errorf("request %d: day %+v, month %+v", i, day.Decision, month.Decision)
		}
	}
}

// stepping is a store whose clock is another one in each call.
type stepping struct {
	headgate.Store

	calls int
}

// Apply implements headgate.Store.
func (s *stepping) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	s.calls++
	for i := range ops {
		if e := ops[i].Edges; e != nil {
			return undecided(decisions, &headgate.EdgeError{At: e[s.calls%2], Edges: *e})
		}
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// TestOutsideOfSeveralClocks: the calls for one request end, and the limit without a calendar is decided.
func TestOutsideOfSeveralClocks(t *testing.T) {
	clock := storetest.NewClock()
	store := &stepping{Store: memoryAt(t, clock)}
	month := monthly(t, calendarLimit(3, headgate.Month))
	month.Fallback = guard.FallbackAllow
	g := calendarGuard(t, 0, store, clock, byClient(t, "plain", "/a", perMinute(5)), month)
	a := decide(t, g, request("/a", "x"))
	if plain, month := &a.Results[0], &a.Results[1]; plain.Fallback || plain.Decision.Remaining != 4 || !month.Fallback || store.calls != 3 {
		t.Errorf("%d calls, plain %+v, month %+v", store.calls, plain.Decision, month.Decision)
	}
}

// TestOutsideDenied: with deny, the request is refused, and the plain limit gets its units back.
func TestOutsideDenied(t *testing.T) {
	s := newSkewed(t, guard.FallbackDeny)
	for range 20 {
		a := decide(t, s.guard, request("/a", "x"))
		s.expect(t, "refused", a, headgate.Deny, 4, true)
		if r := a.Closest(); r.Rule.Name != "quota" || r.Decision.Reason != headgate.StoreUnavailable {
			t.Errorf("refused by %s for %s", r.Rule.Name, r.Decision.Reason)
		}
	}
}

// TestOutsideInLocal: with local, the month counts in this process.
func TestOutsideInLocal(t *testing.T) {
	s := newSkewed(t, guard.FallbackLocal)
	for i := range int64(3) {
		s.expect(t, "counted", decide(t, s.guard, request("/a", "x")), headgate.Allow, 4-i, true)
	}
	s.expect(t, "above the month", decide(t, s.guard, request("/a", "x")), headgate.Deny, 1, true)
}

// TestOutsideTogether: DecideAll decides the other limits too, also those of other requests of the call.
func TestOutsideTogether(t *testing.T) {
	s := newSkewed(t, guard.FallbackAllow)
	requests, answers := make([]headgate.Request, 7), make([]guard.Answer, 7)
	for round := range 2 {
		for i := range requests {
			requests[i] = *request("/a", []string{"x", "y"}[round])
		}
		s.guard.DecideAll(t.Context(), requests, answers)
		for i := range answers {
			verdict := headgate.Allow
			if i >= 5 {
				verdict = headgate.Deny
			}
			s.expect(t, "together", &answers[i], verdict, max(0, 4-int64(i)), true)
		}
	}
}

// TestOutsideInATree: descriptors without a calendar are decided, and the others by the fallback of their domain.
func TestOutsideInATree(t *testing.T) {
	for _, together := range []bool{false, true} {
		clock := storetest.NewClock()
		leaf := func(key string, l headgate.Limit) guard.Descriptor {
			return guard.Descriptor{Key: key, Leaf: &guard.Leaf{Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: l}}}}
		}
		g, err := guard.New(guard.Config{
			Store: memoryAt(t, clock), Clock: func() headgate.Instant { return clock.Now().Add(-100 * 24 * time.Hour) },
			Domains: []guard.Domain{{Name: "shop", Fallback: guard.FallbackAllow, Descriptors: []guard.Descriptor{
				leaf("month", calendarLimit(3, headgate.Month)), leaf("minute", perMinute(5)),
			}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(4) {
			requests := []headgate.Request{
				{Domain: "shop", Cost: 1, Descriptors: headgate.Descriptors{{Name: "month", Value: "x"}}},
				{Domain: "shop", Cost: 1, Descriptors: headgate.Descriptors{{Name: "minute", Value: "x"}}},
			}
			answers := make([]guard.Answer, 2)
			g.DecideDescriptors(t.Context(), requests, answers, together)
			month, minute := &answers[0].Results[0], &answers[1].Results[0]
			if want := 4 - i; !month.Fallback || minute.Fallback || minute.Decision.Remaining != want || answers[0].Verdict != headgate.Allow {
				t.Errorf("together %t, call %d: %+v and %+v, want %d remaining", together, i, month.Decision, minute.Decision, want)
			}
		}
	}
}
