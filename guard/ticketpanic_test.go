package guard_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/atmost"
)

// panics reports whether f panics with the value "stage".
func panics(f func()) (did bool) {
	defer func() { did = recover() == "stage" }()
	f()
	return false
}

// breaking is a guard with one slot, a scripted stage, and a rule.
func breaking(t *testing.T) (*guard.Guard, *atmost.Stage, *scripted) {
	t.Helper()
	slots, second := atmost.New(1, 9), &scripted{name: "second", reports: new([]string), decide: admits}
	g, _ := newGuard(t, guard.Config{
		Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(9))}, Stages: []guard.Stage{slots, second},
	})
	return g, slots, second
}

// wantUsable checks that all slots and units are returned, and that the Ticket can be reused.
func wantUsable(t *testing.T, g *guard.Guard, slots *atmost.Stage, ticket *guard.Ticket, units int64) {
	t.Helper()
	ticket.Done(guard.Outcome{End: guard.Panicked})
	if used, _, waiting := slots.Slots(); used != 0 || waiting != 0 {
		t.Errorf("%d slots are used and %d requests wait, want none", used, waiting)
	}
	if n := left(t, g); n != units {
		t.Errorf("%d units remain, want %d", n, units)
	}
	if v := admit(t.Context(), t, g, ticket); v != headgate.Allow {
		t.Errorf("the next request of the Ticket: %v", v)
	}
	ticket.Done(guard.Outcome{})
}

// A panic of Enter reaches the caller of Admit. The request leaves the earlier stages.
func TestEnterPanics(t *testing.T) {
	g, slots, second := breaking(t)
	second.enter = func(*guard.Pass) { panic("stage") }
	ticket := &guard.Ticket{Answer: new(guard.Answer)}
	if !panics(func() { admit(t.Context(), t, g, ticket) }) || ticket.Answer.Verdict != headgate.Deny {
		t.Errorf("no panic, or the verdict %v", ticket.Answer.Verdict)
	}
	second.enter = nil
	wantUsable(t, g, slots, ticket, 8)
}

// A panic of Enter reaches the caller of Wait. For a request with WaitFunc, it reaches the caller
// of Resume, and WaitFunc's function gets Deny.
func TestEnterPanicsAfterAWait(t *testing.T) {
	for _, called := range []bool{false, true} {
		g, slots, second := breaking(t)
		var busy, ticket guard.Ticket
		admit(t.Context(), t, g, &busy)
		if v := admit(t.Context(), t, g, &ticket); v != headgate.Wait {
			t.Fatalf("verdict %v", v)
		}
		second.enter = func(*guard.Pass) { panic("stage") }
		var verdict headgate.Verdict
		resumes, waits := func() { busy.Done(guard.Outcome{}) }, func() { _, _ = ticket.Wait(t.Context()) }
		if called {
			ticket.WaitFunc(func(v headgate.Verdict) { verdict = v })
			resumes, waits = func() {}, resumes
		}
		resumes()
		if !panics(waits) || called && verdict != headgate.Deny {
			t.Errorf("no panic, or WaitFunc was told %v", verdict)
		}
		second.enter = nil
		busy.Done(guard.Outcome{})
		wantUsable(t, g, slots, &ticket, 7)
	}
}

// A panic of Leave reaches the caller of Done. The other stages are still left.
func TestLeavePanics(t *testing.T) {
	g, slots, second := breaking(t)
	var ticket guard.Ticket
	admit(t.Context(), t, g, &ticket)
	second.leave = func() { panic("stage") }
	if !panics(func() { ticket.Done(guard.Outcome{}) }) {
		t.Error("no panic")
	}
	second.leave = nil
	wantUsable(t, g, slots, &ticket, 7)
}

// A waiting request's caller leaves, and Leave panics. The units of the request are returned.
func TestLeavePanicsForWaiter(t *testing.T) {
	g, slots, second := breaking(t)
	second.decide, second.leave = holds, func() { panic("stage") }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var ticket guard.Ticket
	admit(ctx, t, g, &ticket)
	if !panics(func() { _, _ = ticket.Wait(ctx) }) {
		t.Error("no panic")
	}
	second.decide, second.leave = admits, nil
	wantUsable(t, g, slots, &ticket, 8)
}

// A Done concurrent with a panic of Enter returns.
func TestDoneBesideAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, slots, second := breaking(t)
		ticket := &guard.Ticket{Answer: new(guard.Answer)}
		var done chan struct{}
		second.enter = func(*guard.Pass) {
			done = make(chan struct{})
			go func() {
				ticket.Done(guard.Outcome{End: guard.ClientLeft})
				close(done)
			}()
			panic("stage")
		}
		if !panics(func() { admit(t.Context(), t, g, ticket) }) {
			t.Error("no panic")
		}
		<-done
		second.enter, ticket.Answer = nil, nil
		wantUsable(t, g, slots, ticket, 8)
	})
}

// A panic of a stage after a departure loses no departure of other requests.
func TestPanicBesideDepartures(t *testing.T) {
	second := &scripted{name: "second", reports: new([]string), decide: admits}
	g, w := departing(t, second)
	reported := 0
	for i := range 4 {
		ticket := &guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(t.Context(), request("/a", string(rune('a'+i%2))), ticket); err != nil {
			t.Fatal(err)
		}
		ticket.WaitFunc(func(headgate.Verdict) { reported++ })
	}
	second.enter = func(*guard.Pass) { panic("stage") }
	for len(w.events) > 0 {
		if !panics(w.run) {
			break
		}
	}
	if reported != 4 || g.Waiting("a") != 0 {
		t.Errorf("%d of 4 were told, and %d wait", reported, g.Waiting("a"))
	}
}

// observerPanics is an Observer that panics at a stage's decision after a wait.
type observerPanics struct{ off bool }

func (o *observerPanics) Observe(*headgate.Request, *guard.Answer) {}

func (o *observerPanics) ObserveStage(*guard.Result) {
	if !o.off {
		panic("stage")
	}
}

func (o *observerPanics) ObserveEnd(*guard.Outcome) {}

// A panic of the Observer reaches the caller of Wait. Done returns, and every slot is free.
func TestObserverPanics(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		slots, second, observer := atmost.New(1, 9), &scripted{name: "second", reports: new([]string), decide: admits}, &observerPanics{}
		g, _ := newGuard(t, guard.Config{
			Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(9))}, Stages: []guard.Stage{second, slots}, Observer: observer,
		})
		later := admits
		if refuses {
			later = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.OverLimit}
		}
		second.decide, second.enter = holds, func(p *guard.Pass) { p.Handle().Resume(later) }
		var ticket guard.Ticket
		if v := admit(t.Context(), t, g, &ticket); v != headgate.Wait {
			t.Fatalf("verdict %v", v)
		}
		if !panics(func() { _, _ = ticket.Wait(t.Context()) }) {
			t.Error("no panic")
		}
		observer.off, second.decide, second.enter = true, admits, nil
		wantUsable(t, g, slots, &ticket, 8)
	}
}
