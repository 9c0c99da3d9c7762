package guard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// ledger is a Meter that keeps the sums, and the last change as text.
type ledger struct {
	mu                         sync.Mutex
	admitted, metered, refused map[string]int64
	minutes                    map[int64]int64 // admitted units by the minute
	last                       string
	others                     bool
}

func newLedger() *ledger {
	return &ledger{admitted: map[string]int64{}, metered: map[string]int64{}, refused: map[string]int64{}, minutes: map[int64]int64{}}
}

func (l *ledger) Count(u headgate.Usage) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := string([]byte(u.Customer)) // The guard uses the memory of the name again.
	l.admitted[key] += u.Admitted
	l.metered[key] += u.Metered
	l.refused[key] += u.Refused
	l.minutes[int64(u.At)/int64(time.Minute)] += u.Admitted
	l.last += fmt.Sprintf("%s/%s %d %d %d", u.Customer, u.Quota, u.Admitted, u.Metered, u.Refused)
	for _, f := range []struct {
		set  bool
		text string
	}{{u.Shadow, " shadow"}, {u.Correction, " correction"}, {u.Others, " others"}} {
		if f.set {
			l.last += f.text
		}
	}
	l.last += ";"
	return l.others
}

func (l *ledger) want(t *testing.T, step, want string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != want {
		t.Errorf("%s: the meter counted %q, want %q", step, l.last, want)
	}
	l.last = ""
}

func costing(cost int64, kind headgate.OpKind) *headgate.Request {
	req := request("/a", "x")
	req.Cost, req.Kind = cost, kind
	return req
}

// TestUsageStory follows what the meter counts for a plan with 10 included units and 20 at most.
func TestUsageStory(t *testing.T) {
	l := newLedger()
	g, _ := newGuard(t, guard.Config{
		Meter: l, Rules: []guard.Rule{counting(t, "api", "/a"), counting(t, "all", "")}, Quotas: quotas(t, []guard.Plan{metering(10, 20)}),
	})
	for _, c := range []struct {
		name string
		cost int64
		kind headgate.OpKind
		want string
	}{
		{"within the included units", 8, headgate.Take, "x/calls 8 0 0;"},
		{"a look", 5, headgate.Peek, ""},
		{"partly metered", 5, headgate.Take, "x/calls 5 3 0;"},
		{"beyond the hard limit", 8, headgate.Take, "x/calls 0 0 8;"},
		{"a refund", 4, headgate.Refund, "x/calls -4 -3 0;"}, // The units 13 to 10: three were metered.
		{"the units come again", 2, headgate.Take, "x/calls 2 1 0;"},
		{"a refund of more than is counted", 50, headgate.Refund, "x/calls -11 -1 0;"},
		{"a refund of nothing", 50, headgate.Refund, ""},
		{"all again", 11, headgate.Take, "x/calls 11 1 0;"},
	} {
		decide(t, g, costing(c.cost, c.kind))
		l.want(t, c.name, c.want)
	}
	a := decide(t, g, costing(2, headgate.Take))
	l.want(t, "before it is cancelled", "x/calls 2 2 0;")
	for range 2 {
		if err := g.Cancel(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	l.want(t, "cancelled twice", "x/calls -2 -2 0 correction;")
}

// TestUsageOfRefusals: another rule refuses, and the quota counts nothing; with independent rules it counts.
func TestUsageOfRefusals(t *testing.T) {
	for independent, want := range map[bool]string{false: "", true: "x/calls 1 0 0;"} {
		l := newLedger()
		g, _ := newGuard(t, guard.Config{
			Meter: l, Independent: independent, Quotas: quotas(t, []guard.Plan{metering(10, 20)}),
			Rules: []guard.Rule{counting(t, "api", "/a"), byClient(t, "none", "/a", headgate.Limit{Per: time.Minute})},
		})
		decide(t, g, request("/a", "x"))
		l.want(t, fmt.Sprintf("independent %t", independent), want)
	}
}

// TestUsageInShadow: a plan in shadow is counted apart, also what it would refuse.
func TestUsageInShadow(t *testing.T) {
	plan := metering(1, 1)
	plan.Mode = guard.Shadow
	l := newLedger()
	g, _ := newGuard(t, guard.Config{Meter: l, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{plan})})
	decide(t, g, request("/a", "x"))
	decide(t, g, request("/a", "x"))
	l.want(t, "in shadow", "x/calls 1 0 0 shadow;x/calls 0 0 1 shadow;")
}

// TestUsageOfFallbacks: the store does not answer.
func TestUsageOfFallbacks(t *testing.T) {
	for f, want := range map[guard.Fallback]string{
		guard.FallbackAllow: "x/calls 1 0 0;", guard.FallbackDeny: "x/calls 0 0 1;", guard.FallbackLocal: "x/calls 1 0 0;",
		guard.FallbackError: "",
	} {
		local, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: storetest.NewClock().Now})
		if err != nil {
			t.Fatal(err)
		}
		l, r := newLedger(), counting(t, "api", "/a")
		r.Fallback = f
		g, _ := newGuard(t, guard.Config{
			Meter: l, Store: deaf{}, Local: local, LocalShare: 50, Rules: []guard.Rule{r}, Quotas: quotas(t, []guard.Plan{metering(4, 8)}),
		})
		decide(t, g, request("/a", "x"))
		l.want(t, f.String(), want)
		decide(t, g, costing(1, headgate.Refund))
		l.want(t, f.String()+", and a refund that the store does not make", "")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_ = g.Decide(gone, request("/a", "x"), new(guard.Answer))
		l.want(t, f.String()+", and the caller is gone", "")
	}
}

// TestUsageGivenBack: what requests took is returned later, by a Taken or all of them.
func TestUsageGivenBack(t *testing.T) {
	l := newLedger()
	l.others = true
	g, _ := newGuard(t, guard.Config{Meter: l, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(1, 9)})})
	var a guard.Answer
	var all guard.TakenAll
	for range 2 {
		if err := g.Decide(t.Context(), costing(2, headgate.Take), &a); err != nil {
			t.Fatal(err)
		}
		all.Add(&a)
	}
	l.want(t, "two requests", "x/calls 2 1 0;x/calls 2 2 0;")
	if err := g.Decide(t.Context(), request("/a", "another"), &a); err != nil { // The Answer is used again.
		t.Fatal(err)
	}
	if all.Size() < 2*int64(len("x")) {
		t.Errorf("two requests have %d bytes", all.Size())
	}
	l.last = ""
	taken := []guard.Taken{all.Take(1)}
	for range 2 {
		if err := g.GiveBack(t.Context(), taken); err != nil {
			t.Fatal(err)
		}
	}
	l.want(t, "given back twice", "x/calls -2 -2 0 correction others;")
	if got := answerOf(decide(t, g, costing(0, headgate.Peek))); got != "allow within_limit 0/1 metered 0" {
		t.Errorf("after the return: %s", got)
	}
}

// TestUsageOfALaterRefusal: the quota admits, and the bound of requests in flight refuses.
func TestUsageOfALaterRefusal(t *testing.T) {
	bound := byClient(t, "bound", "/a")
	bound.InFlight = 1
	l := newLedger()
	g, _ := newGuard(t, guard.Config{
		Meter: l, Rules: []guard.Rule{counting(t, "api", "/a"), bound}, Quotas: quotas(t, []guard.Plan{metering(1, 9)}),
	})
	entered(t, g, "x")
	l.want(t, "the first request", "x/calls 1 0 0;")
	wantReason(t, entered(t, g, "x"), headgate.Deny, headgate.InFlight)
	l.want(t, "the second request", "x/calls 1 1 0;x/calls -1 -1 0 correction;")
}

// TestUsageOfOutcomes: the end of a request changes its units.
func TestUsageOfOutcomes(t *testing.T) {
	for _, c := range []struct {
		name, real, want string
		status           int
		count            []int
	}{
		{"as estimated", "4", "", 200, nil},
		{"no statement", "", "", 200, nil},
		{"less", "1", "x/calls -3 -2 0 correction;", 200, nil},      // Its metered units come back first.
		{"more", "6", "x/calls 2 2 0 correction;", 200, nil},        // The request has used up the included units.
		{"far more", "90", "x/calls 86 86 0 correction;", 200, nil}, // The counter has room for 40 units in all.
		{"not counted", "", "x/calls -4 -2 0 correction;", 404, []int{200}},
		{"counted", "", "", 200, []int{200}},
	} {
		l, r := newLedger(), counting(t, "api", "/a")
		if r.Count = c.count; c.count == nil {
			r.Settle = "X-Cost"
		}
		g, _ := newGuard(t, guard.Config{Meter: l, Rules: []guard.Rule{r}, Quotas: quotas(t, []guard.Plan{metering(2, 20)})})
		ticket := guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(t.Context(), costing(4, headgate.Take), &ticket); err != nil {
			t.Fatal(err)
		}
		l.want(t, c.name, "x/calls 4 2 0;")
		ticket.Forward()
		ticket.Done(guard.Outcome{End: guard.Answered, Status: c.status, Header: stated("X-Cost", c.real)})
		l.want(t, c.name, c.want)
	}
}

// TestUsageOfAChargeAcrossTheIncludedUnits: the estimate was included, and the real cost is not. The counter says which part is metered.
func TestUsageOfAChargeAcrossTheIncludedUnits(t *testing.T) {
	l, r := newLedger(), counting(t, "api", "/a")
	r.Settle = "X-Cost"
	g, _ := newGuard(t, guard.Config{Meter: l, Rules: []guard.Rule{r}, Quotas: quotas(t, []guard.Plan{metering(5, 20)})})
	ticket := guard.Ticket{Answer: new(guard.Answer)}
	if err := g.Admit(t.Context(), costing(4, headgate.Take), &ticket); err != nil {
		t.Fatal(err)
	}
	ticket.Forward()
	ticket.Done(guard.Outcome{End: guard.Answered, Status: 200, Header: stated("X-Cost", "7")})
	l.want(t, "4, and really 7, with 5 included", "x/calls 4 0 0;x/calls 3 0 0 correction;x/calls 0 2 0 correction;")
}

// TestUsageAddsUp: random requests, most of which end in some way. The counter, the answers and the meter agree.
func TestUsageAddsUp(t *testing.T) {
	for seed := range uint64(200) {
		usageRun(t, rand.New(rand.NewPCG(seed, 1)))
	}
}

func usageRun(t *testing.T, r *rand.Rand) {
	t.Helper()
	l, settled := newLedger(), counting(t, "settled", "/a")
	settled.Settle = "X-Cost"
	g, clock := newGuard(t, guard.Config{
		Meter: l, Rules: []guard.Rule{settled, counting(t, "looked", "/b")}, Quotas: quotas(t, []guard.Plan{metering(50, 1000)}),
	})
	begun := int64(clock.Now())
	var refused, want int64
	for range 30 {
		clock.Advance(time.Duration(r.IntN(40)) * time.Second)
		cost := 1 + r.Int64N(90)
		ticket := guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(t.Context(), costing(cost, headgate.Take), &ticket); err != nil {
			t.Fatal(err)
		}
		if ticket.Answer.Verdict == headgate.Deny {
			refused += cost
			continue
		}
		clock.Advance(time.Duration(r.IntN(200)) * time.Second)
		switch r.IntN(3) {
		case 0:
			if err := g.Cancel(t.Context(), ticket.Answer); err != nil {
				t.Fatal(err)
			}
			continue
		case 1:
			ticket.Forward()
			cost = r.Int64N(2 * cost)
			ticket.Done(guard.Outcome{End: guard.Answered, Status: 200, Header: stated("X-Cost", fmt.Sprint(cost))})
		}
		want += cost
	}
	look := costing(0, headgate.Peek)
	look.Path = "/b"
	peek := decide(t, g, look)
	if counted := usedOf(peek); l.admitted["x"] != want || l.refused["x"] != refused || want <= 1000 && counted != min(want, 50) {
		t.Fatalf("the meter has %d admitted and %d refused, the counter %d; the requests had %d and %d",
			l.admitted["x"], l.refused["x"], counted, want, refused)
	}
	// Requests one after another: each gives its own units back, so the sum of the metered units is that of the counter.
	if beyond := max(0, want-50); want <= 1000 && l.metered["x"] != beyond {
		t.Fatalf("the meter has %d metered units of %d, want %d", l.metered["x"], want, beyond)
	}
	for minute := range l.minutes {
		if minute < begun/int64(time.Minute) || minute > int64(clock.Now())/int64(time.Minute) {
			t.Fatalf("units in the minute %d", minute)
		}
	}
}

// usedOf gives the used part of the included units.
func usedOf(a *guard.Answer) int64 {
	d := &a.Results[0].Decision
	return d.Limit - d.Remaining
}

// TestCorrectionHasTheMinuteOfTheDecision.
func TestCorrectionHasTheMinuteOfTheDecision(t *testing.T) {
	l := newLedger()
	g, clock := newGuard(t, guard.Config{Meter: l, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(1, 9)})})
	a := decide(t, g, request("/a", "x"))
	clock.Advance(time.Hour)
	if err := g.Cancel(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if len(l.minutes) != 1 {
		t.Errorf("the decision and its correction are in the minutes %v, want one minute", l.minutes)
	}
}

func TestUsageAllocatesNothing(t *testing.T) {
	g, _ := newGuard(t, guard.Config{
		Meter: silent{}, Rules: []guard.Rule{counting(t, "api", "/a")}, Quotas: quotas(t, []guard.Plan{metering(1, headgate.MaxUnits)}),
	})
	var a guard.Answer
	req := request("/a", "x")
	if n := testing.AllocsPerRun(100, func() { _ = g.Decide(t.Context(), req, &a) }); n != 0 {
		t.Errorf("a metered request allocates %v times, want 0", n)
	}
}

type silent struct{}

func (silent) Count(headgate.Usage) bool { return false }
