package guard_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// TestTicketWaitsAgain: in a guard without stages, WaitFunc of a reused Ticket works as with a new one.
func TestTicketWaitsAgain(t *testing.T) {
	limit := byClient(t, "a", "/a")
	limit.Policies = []headgate.Policy{{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 200, Per: time.Second, Burst: 9}}}
	limit.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Minute}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{limit}})
	var ticket guard.Ticket
	for i := range 4 {
		said := admit(t.Context(), t, g, &ticket)
		notified := make(chan headgate.Verdict, 1)
		ticket.WaitFunc(func(v headgate.Verdict) { notified <- v })
		if v := <-notified; v != headgate.Allow {
			t.Errorf("request %d: Admit says %v, and WaitFunc %v", i, said, v)
		}
		ticket.Done(guard.Outcome{})
	}
}

// TestHeadersAreOfOneRequest: a stage adds headers to a request that is refused later. The next
// request of the Ticket does not get them, with other stages or without.
func TestHeadersAreOfOneRequest(t *testing.T) {
	first := &scripted{decide: admits, enter: func(p *guard.Pass) { p.AddHeader("X-Tenant", "A") }}
	g, _ := staged(t, first, &scripted{decide: refuses})
	var ticket guard.Ticket
	admit(t.Context(), t, g, &ticket)
	ticket.Done(guard.Outcome{End: guard.Refused})
	if err := g.Reload(guard.Config{Store: g.Store(), Rules: []guard.Rule{byClient(t, "a", "/a", perMinute(5))}}); err != nil {
		t.Fatal(err)
	}
	admit(t.Context(), t, g, &ticket)
	if headers := ticket.Headers(); len(headers) > 0 {
		t.Errorf("%v are of another request", headers)
	}
}

// TestShadowStageHearsOfNoStream: a stage in shadow that refuses a request gets no call of Stream
// for it.
func TestShadowStageHearsOfNoStream(t *testing.T) {
	first, second := &scripted{decide: refuses, mode: guard.Shadow}, &scripted{decide: admits}
	g, reports := staged(t, first, second)
	var ticket guard.Ticket
	admit(t.Context(), t, g, &ticket)
	ticket.Forward()
	ticket.Stream()
	ticket.Done(guard.Outcome{})
	wantTold(t, reports, "enter first", "enter second", "stream second", "leave second")
}

// TestOneResumeCounts: during a refusal by Resume, a second Resume has no effect, and reports false.
func TestOneResumeCounts(t *testing.T) {
	first, second := &scripted{decide: holds}, &scripted{decide: admits}
	g, _ := staged(t, first, second)
	var ticket guard.Ticket
	admit(t.Context(), t, g, &ticket)
	ticket.WaitFunc(func(headgate.Verdict) {})
	again := false
	first.leave = func() { again = first.handle.Resume(admits) }
	first.handle.Resume(refuses)
	if again {
		t.Error("a request that is refused is resumed")
	}
	ticket.Done(guard.Outcome{})
}

// TestEndBeforeContext: a stage ends a request before Context was called. Context then gives an
// ended context.
func TestEndBeforeContext(t *testing.T) {
	errStop := errors.New("stop")
	first, second := &scripted{decide: admits, facts: guard.Facts{Ends: true}}, &scripted{decide: admits}
	g, _ := staged(t, first, second)
	var ticket guard.Ticket
	admit(t.Context(), t, g, &ticket)
	if !first.handle.End(errStop) {
		t.Error("the request is said to have ended")
	}
	ticket.Forward()
	if ctx := ticket.Context(t.Context()); ctx.Err() == nil {
		t.Error("the context goes on")
	}
	ticket.Done(guard.Outcome{})
}

// TestDonesBesideEachOther: several concurrent Dones end a request once, while it is resumed.
func TestDonesBesideEachOther(t *testing.T) {
	for range 500 {
		first, second := &scripted{decide: holds}, &scripted{decide: admits}
		g, reports := staged(t, first, second)
		var ticket guard.Ticket
		admit(t.Context(), t, g, &ticket)
		ticket.WaitFunc(func(headgate.Verdict) {})
		var all sync.WaitGroup
		all.Go(func() { first.handle.Resume(admits) })
		for range 3 {
			all.Go(func() { ticket.Done(guard.Outcome{}) })
		}
		all.Wait()
		left := 0
		for _, what := range *reports {
			if what == "leave first" {
				left++
			}
		}
		if left != 1 {
			t.Fatalf("the stages were told %q", *reports)
		}
	}
}
