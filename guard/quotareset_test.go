package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// total gives the admitted units of the customer x, and forgets the text.
func (l *ledger) total() (admitted, metered int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = ""
	return l.admitted["x"], l.metered["x"]
}

func reset(t *testing.T, g *guard.Guard) (used int64) {
	t.Helper()
	before, err := g.ResetUsage(t.Context(), "x", "", "")
	if err != nil {
		t.Fatal(err)
	}
	return before[0].Used
}

// TestResetWithRequestsInFlight: requests take estimates of 40 units, and a reset comes before they end. What they give back then is in
// the reset already. Whatever the end, the records add up to the counter.
func TestResetWithRequestsInFlight(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, g *guard.Guard, ticket *guard.Ticket)
		want int64 // of the records and the counter, after the reset
	}{
		{"a lower cost", func(_ *testing.T, _ *guard.Guard, ticket *guard.Ticket) {
			ticket.Forward()
			ticket.Done(guard.Outcome{End: guard.Answered, Status: 200, Header: stated("X-Cost", "5")})
		}, 0},
		{"a higher cost", func(_ *testing.T, _ *guard.Guard, ticket *guard.Ticket) {
			ticket.Forward()
			ticket.Done(guard.Outcome{End: guard.Answered, Status: 200, Header: stated("X-Cost", "47")})
		}, 7},
		{"a status that does not count", func(_ *testing.T, _ *guard.Guard, ticket *guard.Ticket) {
			ticket.Forward()
			ticket.Done(guard.Outcome{End: guard.Answered, Status: 500, Header: stated("X-Cost", "40")})
		}, 0},
		{"cancelled", func(t *testing.T, g *guard.Guard, ticket *guard.Ticket) {
			t.Helper()
			if err := g.Cancel(t.Context(), ticket.Answer); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"given back", func(t *testing.T, g *guard.Guard, ticket *guard.Ticket) {
			t.Helper()
			if err := g.GiveBack(t.Context(), []guard.Taken{ticket.Answer.Taken()}); err != nil {
				t.Fatal(err)
			}
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, r := newLedger(), counting(t, "api", "/a")
			r.Settle, r.Count = "X-Cost", []int{200}
			g, clock := newGuard(t, guard.Config{Meter: l, Rules: []guard.Rule{r}, Quotas: quotas(t, []guard.Plan{metering(60, 900)})})
			admit := func() *guard.Ticket {
				ticket := &guard.Ticket{Answer: new(guard.Answer)}
				if err := g.Admit(t.Context(), costing(40, headgate.Take), ticket); err != nil {
					t.Fatal(err)
				}
				return ticket
			}
			before := admit()
			admit().Forward()
			clock.Advance(time.Second)
			if used := reset(t, g); used != 80 {
				t.Errorf("the reset gives back %d units, want 80", used)
			}
			l.want(t, "two requests and the reset", "x/calls 40 0 0;x/calls 40 20 0;x/calls -80 -20 0;")
			clock.Advance(time.Second)
			c.end(t, g, before)
			wantSums(t, g, l, c.want)
			clock.Advance(time.Second)
			after := admit() // A request after the reset gives back as usual.
			after.Forward()
			after.Done(guard.Outcome{End: guard.Answered, Status: 200, Header: stated("X-Cost", "9")})
			wantSums(t, g, l, c.want+9)
		})
	}
}

// wantSums checks the sum of the records against the counter.
func wantSums(t *testing.T, g *guard.Guard, l *ledger, want int64) {
	t.Helper()
	all, err := g.Usage(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if admitted, metered := l.total(); admitted != want || all[0].Used != want || metered != max(0, want-all[0].Limit.Count) {
		t.Errorf("the records have %d admitted and %d metered units, and the counter %d; want %d", admitted, metered, all[0].Used, want)
	}
}

// TestResetOfALaterWindow: a request of the former window ends after a reset of the present one. The bill of the former window is corrected.
func TestResetOfALaterWindow(t *testing.T) {
	l := newLedger()
	g, clock := newGuard(t, guard.Config{Meter: l, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(60, 900)})})
	a := decide(t, g, costing(40, headgate.Take))
	clock.Advance(30 * day)
	reset(t, g)
	if err := g.Cancel(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	l.want(t, "the former window", "x/calls 40 0 0;x/calls -40 0 0 correction;")
}

// TestResetOfAnEmptyCounter: another instance has reset the counter. A reset here records nothing, and what is in flight here neither.
func TestResetOfAnEmptyCounter(t *testing.T) {
	l := newLedger()
	config := guard.Config{Meter: l, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(60, 900)})}
	g, clock := newGuard(t, config)
	config.Store = g.Store()
	other, _ := newGuard(t, config)
	a := decide(t, g, costing(40, headgate.Take))
	clock.Advance(time.Second)
	reset(t, other)
	reset(t, g)
	if err := g.Cancel(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	wantSums(t, g, l, 0)
}

// TestTwoResetsAtOnce: both have read 12 units. One of them gives them back, and one record says so.
func TestTwoResetsAtOnce(t *testing.T) {
	clock := storetest.NewClock()
	inner, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	store, l := &interrupted{Store: inner}, newLedger()
	config := guard.Config{
		Meter: l, Store: store, Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(10, 20)}),
	}
	g, _ := newGuard(t, config)
	config.Store = inner
	other, _ := newGuard(t, config)
	decide(t, g, costing(12, headgate.Take))
	store.before = func() {
		if used := reset(t, other); used != 12 {
			t.Errorf("the first reset gives back %d units, want 12", used)
		}
		decide(t, other, costing(5, headgate.Take)) // 5 of 12 units come back to the second reset.
	}
	if used := reset(t, g); used != 5 {
		t.Errorf("the second reset gives back %d units, want 5", used)
	}
	wantSums(t, g, l, 0)
}

// TestMarkOfAReset: the record of a reset is in shadow only if nothing that counts the quota is enforced.
func TestMarkOfAReset(t *testing.T) {
	for _, c := range []struct {
		rules []guard.Mode
		plan  guard.Mode
		want  string
	}{
		{[]guard.Mode{guard.Enforce}, guard.Enforce, "x/calls -3 0 0;"},
		{[]guard.Mode{guard.Shadow}, guard.Enforce, "x/calls -3 0 0 shadow;"},
		{[]guard.Mode{guard.Enforce}, guard.Shadow, "x/calls -3 0 0 shadow;"},
		{[]guard.Mode{guard.Shadow, guard.Enforce}, guard.Enforce, "x/calls -3 0 0;"},
		{[]guard.Mode{guard.Enforce, guard.Shadow}, guard.Enforce, "x/calls -3 0 0;"},
		{[]guard.Mode{guard.Shadow, guard.Shadow}, guard.Enforce, "x/calls -3 0 0 shadow;"},
	} {
		var rules []guard.Rule
		for i, mode := range c.rules {
			r := counting(t, fmt.Sprint("r", i), []string{"/b", "/a"}[(len(c.rules)-i)%2])
			r.Mode = mode
			rules = append(rules, r)
		}
		plan, l := metering(10, 20), newLedger()
		plan.Mode = c.plan
		g, _ := newGuard(t, guard.Config{Meter: l, Rules: rules, Quotas: quotas(t, []guard.Plan{plan})})
		decide(t, g, costing(3, headgate.Take))
		l.last = ""
		reset(t, g)
		l.want(t, fmt.Sprintf("rules %v, plan %v", c.rules, c.plan), c.want)
	}
}

// failingRefunds is a store in which every Refund after the first one fails.
type failingRefunds struct {
	*memory.Store

	refunds int
}

// Apply implements headgate.Store.
func (s *failingRefunds) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	if ops[0].Kind == headgate.Refund {
		if s.refunds++; s.refunds > 1 {
			decisions[0] = headgate.Undecided()
			return errors.New("the store is away")
		}
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// TestResetThatFails: what was given back before the error is recorded. A repeated reset records the rest.
func TestResetThatFails(t *testing.T) {
	clock := storetest.NewClock()
	inner, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	more := counting(t, "more", "/a")
	more.Quota = "more"
	plan := metering(10, 20)
	plan.Quotas = append(plan.Quotas, guard.QuotaLimits{Quota: "more", Limits: []guard.QuotaLimit{upTo(10, 20)}})
	store, l := &failingRefunds{Store: inner}, newLedger()
	g, _ := newGuard(t, guard.Config{
		Meter: l, Store: store, Clock: clock.Now, Rules: []guard.Rule{counting(t, "api", "/a"), more}, Quotas: quotas(t, []guard.Plan{plan}),
	})
	decide(t, g, costing(4, headgate.Take))
	l.last = ""
	before, err := g.ResetUsage(t.Context(), "x", "", "")
	if err == nil || len(before) != 2 {
		t.Fatalf("got %d limits, %v, want 2 and an error", len(before), err)
	}
	l.want(t, "the first quota", "x/calls -4 0 0;")
	store.refunds = -1
	reset(t, g)
	l.want(t, "repeated", "x/more -4 0 0;")
}

// TestResetsAreBounded: the oldest of many resets is forgotten, and the others are known.
func TestResetsAreBounded(t *testing.T) {
	l := newLedger()
	g, clock := newGuard(t, guard.Config{Meter: l, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(60, 900)})})
	names := []string{"c0", "c1024"}
	var inFlight []*guard.Answer
	for _, name := range names {
		req := request("/a", name)
		a := new(guard.Answer)
		if err := g.Decide(t.Context(), req, a); err != nil {
			t.Fatal(err)
		}
		inFlight = append(inFlight, a)
	}
	for i := range 1025 {
		clock.Advance(time.Millisecond)
		if _, err := g.ResetUsage(t.Context(), fmt.Sprint("c", i), "", ""); err != nil {
			t.Fatal(err)
		}
	}
	l.last = ""
	for _, a := range inFlight {
		if err := g.Cancel(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	l.want(t, "the ends", "c0/calls -1 0 0 correction;")
}
