package guard_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
)

// inFlight is a rule of ten a minute with n slots for each client.
func inFlight(t *testing.T, n int64) guard.Rule {
	t.Helper()
	r := byClient(t, "a", "/a", perMinute(10))
	r.InFlight = n
	return r
}

// entered admits a request, and gives its ticket.
func entered(t *testing.T, g *guard.Guard, client string) *guard.Ticket {
	t.Helper()
	ticket := &guard.Ticket{Answer: new(guard.Answer)}
	if err := g.Admit(t.Context(), request("/a", client), ticket); err != nil {
		t.Fatal(err)
	}
	return ticket
}

// wantReason checks the verdict and the reason of the closest result of a ticket.
func wantReason(t *testing.T, ticket *guard.Ticket, v headgate.Verdict, why headgate.Reason) {
	t.Helper()
	a := ticket.Answer
	if a.Verdict != v || a.Closest() == nil || a.Closest().Decision.Reason != why {
		t.Fatalf("the verdict is %v with the closest result %+v, want %v for %v", a.Verdict, a.Closest(), v, why)
	}
}

func TestInFlight(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{inFlight(t, 2)}})
	first, second := entered(t, g, "x"), entered(t, g, "x")
	if g.InFlight("a") != 2 || !first.Forward() {
		t.Errorf("%d slots are taken by two requests", g.InFlight("a"))
	}
	third := entered(t, g, "x")
	wantReason(t, third, headgate.Deny, headgate.InFlight)
	r := third.Answer.Closest()
	if d := r.Decision; d.RetryAfter != 0 || d.Limit != 2 || d.Remaining != 0 || !r.Final() || r.Policy != "a-in-flight" {
		t.Errorf("the refusal is %+v of policy %s", d, r.Policy)
	}
	third.Done(guard.Outcome{End: guard.Refused})
	wantReason(t, entered(t, g, "y"), headgate.Allow, headgate.WithinLimit)
	first.Done(guard.Outcome{})
	first.Done(guard.Outcome{})
	fourth := entered(t, g, "x")
	wantReason(t, fourth, headgate.Allow, headgate.WithinLimit)
	if left := fourth.Answer.Results[0].Decision.Remaining; left != 7 {
		t.Errorf("%d units remain, want 7: the refusal returned its unit", left)
	}
	wantReason(t, entered(t, g, "x"), headgate.Deny, headgate.InFlight)
	second.Done(guard.Outcome{})
	fourth.Done(guard.Outcome{})
	if n := g.InFlight("a"); n != 1 { // that of y
		t.Errorf("%d slots are taken at the end", n)
	}
}

// A rule may have slots alone.
func TestInFlightWithoutLimits(t *testing.T) {
	r := byClient(t, "a", "/a")
	r.InFlight = 1
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	first := entered(t, g, "x")
	if a := first.Answer; a.Verdict != headgate.Allow || len(a.Results) != 1 || a.Closest() != nil {
		t.Errorf("the answer is %+v", a)
	}
	wantReason(t, entered(t, g, "x"), headgate.Deny, headgate.InFlight)
	first.Done(guard.Outcome{})
	if v := entered(t, g, "x").Answer.Verdict; v != headgate.Allow {
		t.Errorf("after the end of the first: %v", v)
	}
}

// In shadow, requests beyond the bound pass, and the result says what enforce would do.
func TestInFlightInShadow(t *testing.T) {
	r := inFlight(t, 1)
	r.Mode = guard.Shadow
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	first, second := entered(t, g, "x"), entered(t, g, "x")
	results := second.Answer.Results
	if d := results[len(results)-1].Decision; second.Answer.Verdict != headgate.Allow || d.Reason != headgate.InFlight {
		t.Errorf("the second request: %v, in shadow %+v", second.Answer.Verdict, d)
	}
	second.Done(guard.Outcome{})
	if g.InFlight("a") != 1 {
		t.Error("the second request gave back a slot that it did not have")
	}
	first.Done(guard.Outcome{})
}

// A slot is held from Admit on, also while the request waits, and is free after each way to leave.
func TestSlotsOfWaits(t *testing.T) {
	r := byClient(t, "a", "/a")
	r.Policies = []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Minute}}}
	r.Exceed, r.InFlight = guard.Exceed{Action: guard.Delay, MaxWait: time.Hour}, 2
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	first, second := entered(t, g, "x"), entered(t, g, "x")
	wantReason(t, second, headgate.Wait, headgate.Scheduled)
	wantReason(t, entered(t, g, "x"), headgate.Deny, headgate.InFlight)
	if n := g.Waiting("a"); n != 1 {
		t.Errorf("%d requests wait, want 1: the refused one has left", n)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := second.Wait(ctx); !errors.Is(err, context.Canceled) || g.InFlight("a") != 1 {
		t.Errorf("after the wait was given up (%v), %d slots are taken, want 1", err, g.InFlight("a"))
	}
	second.Done(guard.Outcome{End: guard.ClientLeft})
	third := entered(t, g, "x")
	wantReason(t, third, headgate.Wait, headgate.Scheduled)
	third.Done(guard.Outcome{End: guard.ClientLeft})
	first.Done(guard.Outcome{End: guard.Panicked})
	if n := g.InFlight("a"); n != 0 {
		t.Errorf("%d slots are taken at the end", n)
	}
}

// A stage's refusal and panic free the slots.
func TestSlotsOfRefusedByStages(t *testing.T) {
	first, second := &scripted{decide: refuses}, &scripted{decide: admits}
	reports := new([]string)
	first.name, first.reports, second.name, second.reports = "first", reports, "second", reports
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{inFlight(t, 1)}, Stages: []guard.Stage{first, second}})
	entered(t, g, "x")
	first.decide = holds
	held := entered(t, g, "x")
	if held.Answer.Verdict != headgate.Wait || g.InFlight("a") != 1 {
		t.Errorf("the stage holds the request: %v, and %d slots are taken", held.Answer.Verdict, g.InFlight("a"))
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, _ = held.Wait(ctx)
	held.Done(guard.Outcome{End: guard.ClientLeft})
	first.enter = func(*guard.Pass) { panic("first") }
	func() {
		defer func() { _ = recover() }()
		entered(t, g, "x")
	}()
	if n := g.InFlight("a"); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}

// A reload changes the number of slots. Taken slots stay taken.
func TestInFlightReloaded(t *testing.T) {
	store := inMemory(t, nil)
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{inFlight(t, 2)}, Store: store})
	first, second := entered(t, g, "x"), entered(t, g, "x")
	for _, c := range []struct {
		n    int64
		want headgate.Verdict
	}{{3, headgate.Allow}, {3, headgate.Deny}, {1, headgate.Deny}, {0, headgate.Allow}} {
		rules := []guard.Rule{inFlight(t, c.n)}
		if err := g.Reload(guard.Config{Rules: rules, Store: store}); err != nil {
			t.Fatal(err)
		}
		if ticket := entered(t, g, "x"); ticket.Answer.Verdict != c.want {
			t.Errorf("with %d slots: %v, want %v", c.n, ticket.Answer.Verdict, c.want)
		}
	}
	first.Done(guard.Outcome{})
	second.Done(guard.Outcome{})
	if n := g.InFlight("a"); n != 1 { // that of the third, which was admitted with 3 slots
		t.Errorf("%d slots are taken, want 1", n)
	}
}

// TestSlotsAsCounted drives a guard at random, and compares it with a count of requests by client.
func TestSlotsAsCounted(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		rule := byClient(t, "a", "/a", perMinute(1e6))
		rule.InFlight = 1 + r.Int64N(4)
		reports := new([]string)
		stage := &scripted{name: "first", reports: reports, decide: admits}
		g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{rule}, Stages: []guard.Stage{stage}})
		live, tickets := map[string]int64{}, map[*guard.Ticket]string{}
		for range 400 {
			client := string(rune('a' + r.IntN(3)))
			if len(tickets) > 0 && r.IntN(2) == 0 {
				for ticket, client := range tickets {
					ticket.Done(guard.Outcome{End: guard.End(r.IntN(7))})
					delete(tickets, ticket)
					live[client]--
					break
				}
				continue
			}
			stage.decide = [...]headgate.Decision{admits, admits, refuses, holds}[r.IntN(4)]
			ticket := entered(t, g, client)
			full := live[client] == rule.InFlight
			if refused := ticket.Answer.Verdict == headgate.Deny; refused != (full || stage.decide == refuses) {
				t.Fatalf("seed %d: with %d of %d slots taken: %+v", seed, live[client], rule.InFlight, ticket.Answer)
			} else if !refused {
				tickets[ticket] = client
				live[client]++
			}
		}
		if n := g.InFlight("a"); n != int64(len(tickets)) {
			t.Fatalf("seed %d: %d slots are taken by %d requests", seed, n, len(tickets))
		}
		for ticket := range tickets {
			ticket.Done(guard.Outcome{})
		}
		if n := g.InFlight("a"); n != 0 {
			t.Fatalf("seed %d: %d slots are lost", seed, n)
		}
	}
}

// slotsDown is a store that counts limits, and cannot take slots.
type slotsDown struct{ headgate.SlotStore }

func (slotsDown) TakeSlot(context.Context, headgate.SlotOp) (headgate.Decision, error) {
	return headgate.Undecided(), errDeaf
}

// Without an answer of the store, the rule's fallback decides.
func TestInFlightFallbacks(t *testing.T) {
	for fallback, want := range map[guard.Fallback][3]headgate.Verdict{
		guard.FallbackDeny:  {headgate.Deny, headgate.Deny, headgate.Deny},
		guard.FallbackAllow: {headgate.Allow, headgate.Allow, headgate.Allow},
		guard.FallbackLocal: {headgate.Allow, headgate.Allow, headgate.Deny},
	} {
		r := inFlight(t, 4)
		r.Fallback = fallback
		g, _ := newGuard(t, guard.Config{
			Rules: []guard.Rule{r}, Store: slotsDown{inMemory(t, nil)}, Local: inMemory(t, nil), LocalShare: 50,
		})
		for i, v := range want {
			a := entered(t, g, "x").Answer
			r := a.Results[len(a.Results)-1]
			if a.Verdict != v || !r.Fallback || !errors.Is(a.StoreError, errDeaf) {
				t.Errorf("%v, request %d: %v, %+v, %v", fallback, i+1, a.Verdict, r, a.StoreError)
			}
		}
	}
}

// TestNeedsTheEnd: Decide and DecideAll refuse a rule that needs the end of requests, and count
// nothing.
func TestNeedsTheEnd(t *testing.T) {
	counts, settles := byClient(t, "a", "/a", perMinute(5)), byClient(t, "a", "/a", perMinute(5))
	counts.Count, settles.Settle = []int{401}, "X-Cost"
	for setting, r := range map[string]guard.Rule{"in_flight": inFlight(t, 1), "count": counts, "settle": settles} {
		store := &shaky{Store: inMemory(t, nil)}
		g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r, byClient(t, "b", "/b", perMinute(5))}, Store: slotted{store}})
		var a guard.Answer
		err := g.Decide(t.Context(), request("/a", "x"), &a)
		var end *guard.EndError
		if !errors.As(err, &end) || end.Rule != "a" || end.Setting != setting || store.calls != 0 || a.Verdict != headgate.Deny {
			t.Errorf("%s: Decide says %v after %d calls of the store", setting, err, store.calls)
		}
		answers := make([]guard.Answer, 2)
		g.DecideAll(t.Context(), []headgate.Request{*request("/b", "x"), *request("/a", "x")}, answers)
		if answers[0].Error != nil || answers[0].Verdict != headgate.Allow || !errors.As(answers[1].Error, &end) {
			t.Errorf("%s: DecideAll says %v and %v", setting, answers[0].Error, answers[1].Error)
		}
	}
}

// slotted gives a shaky store the slots of the store in memory behind it.
type slotted struct{ *shaky }

func (s slotted) TakeSlot(ctx context.Context, op headgate.SlotOp) (headgate.Decision, error) {
	slots, _ := headgate.SlotsOf(s.Store)
	return slots.TakeSlot(ctx, op)
}

func (s slotted) FreeSlot(r headgate.Receipt) {
	slots, _ := headgate.SlotsOf(s.Store)
	slots.FreeSlot(r)
}

func TestFaultyInFlight(t *testing.T) {
	for want, change := range map[string]func(*guard.Config){
		"a store in memory or on Redis": func(c *guard.Config) { c.Store = deaf{} },
		"in_flight -1":                  func(c *guard.Config) { c.Rules[0].InFlight = -1 },
		"in_flight_ttl -1s":             func(c *guard.Config) { c.Rules[0].InFlightTTL = -time.Second },
		"raise local_share to 50%": func(c *guard.Config) {
			c.Rules[0].Fallback, c.Local, c.LocalShare = guard.FallbackLocal, inMemory(t, nil), 20
		},
	} {
		c := guard.Config{Rules: []guard.Rule{inFlight(t, 2)}, Store: inMemory(t, nil)}
		change(&c)
		if _, err := guard.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}

// A request with a slot, and units that its outcome returns, allocates nothing.
func TestEndsAllocateNothing(t *testing.T) {
	if race.On {
		return // The race detector empties pools.
	}
	r := byClient(t, "a", "/a", perMinute(1e6))
	r.InFlight, r.Count = 3, []int{401}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	ticket, a, req := guard.Ticket{}, guard.Answer{}, request("/a", "x")
	run := func() {
		ticket.Answer = &a
		if err := g.Admit(t.Context(), req, &ticket); err != nil || !ticket.Forward() {
			t.Fatal(err)
		}
		ticket.Done(guard.Outcome{Status: 200})
	}
	run()
	if n := testing.AllocsPerRun(200, run); n != 0 {
		t.Errorf("a request allocates %v times", n)
	}
	if s := g.Settled("a"); s.Returned < 200 || g.InFlight("a") != 0 {
		t.Errorf("settled: %+v, and %d slots taken", s, g.InFlight("a"))
	}
}
