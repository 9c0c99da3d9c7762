package guard_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/atmost"
	"github.com/headgate/headgate/store/memory"
)

// TestSlotsReturnToZero: 10,000 concurrent requests end in every possible way, during reloads. No
// slot is lost, and at most three are used at a time.
func TestSlotsReturnToZero(t *testing.T) {
	const requests = 10_000
	slots := atmost.New(3, 50)
	limit := byClient(t, "a", "/a")
	limit.Policies = []headgate.Policy{{
		Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 5000, Per: time.Second, Burst: 50},
	}}
	c := guard.Config{Rules: []guard.Rule{limit}, Stages: []guard.Stage{slots}}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20}) // The store uses the machine's clock.
	if err != nil {
		t.Fatal(err)
	}
	c.Store = store
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var reloads, all sync.WaitGroup
	reloads.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if err := g.Reload(c); err != nil {
				t.Error(err)
			}
		}
	})
	tickets := sync.Pool{New: func() any { return &guard.Ticket{Answer: new(guard.Answer)} }}
	for range 100 {
		all.Go(func() {
			for range requests / 100 {
				ticket := tickets.Get().(*guard.Ticket)
				oneOfMany(t, g, ticket)
				ticket.Answer = new(guard.Answer)
				tickets.Put(ticket)
			}
		})
	}
	all.Wait()
	close(stop)
	reloads.Wait()
	if used, peak, waiting := slots.Slots(); used != 0 || peak != 3 || waiting != 0 {
		t.Errorf("%d slots are used, %d were at once, %d requests wait", used, peak, waiting)
	}
	if n := g.Waiting("a"); n != 0 {
		t.Errorf("%d requests wait for their departure", n)
	}
}

// oneOfMany takes a request through the guard, and ends it in a random way.
func oneOfMany(t *testing.T, g *guard.Guard, ticket *guard.Ticket) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if rand.IntN(3) == 0 {
		time.AfterFunc(time.Duration(rand.IntN(int(4*time.Millisecond))), cancel)
	}
	if err := g.Admit(ctx, request("/a", "x"), ticket); err != nil {
		t.Error(err)
		return
	}
	outcome := guard.Outcome{End: guard.End(rand.IntN(5))}
	if ticket.Answer.Verdict != headgate.Wait {
		ticket.Forward()
		ticket.Done(outcome)
		return
	}
	switch rand.IntN(3) {
	case 0: // Done comes while the request waits, or is woken.
		done := make(chan struct{}, 1)
		ticket.WaitFunc(func(headgate.Verdict) { done <- struct{}{} })
		select {
		case <-done:
		case <-time.After(time.Duration(rand.IntN(int(2 * time.Millisecond)))):
		}
	default:
		_, _ = ticket.Wait(ctx)
	}
	var twice sync.WaitGroup
	twice.Go(func() { ticket.Done(outcome) })
	ticket.Done(outcome)
	twice.Wait()
}
