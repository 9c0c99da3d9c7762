package guard_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/atmost"
	"github.com/headgate/headgate/store/memory"
)

// departing is a guard in virtual time. Requests of a client depart a second apart, and then enter
// the stages.
func departing(t *testing.T, stages ...guard.Stage) (*guard.Guard, *world) {
	t.Helper()
	w := new(world)
	clock := func() headgate.Instant { return headgate.Instant(time.Hour + w.now) }
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	limit := byClient(t, "a", "/a")
	limit.Policies = []headgate.Policy{{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 1, Per: time.Second, Burst: 40}}}
	g, err := guard.New(guard.Config{Rules: []guard.Rule{limit}, Stages: stages, Store: store, Clock: clock, State: guard.NewStateAt(w)})
	if err != nil {
		t.Fatal(err)
	}
	return g, w
}

// TestChainOfResumes: each held request ends at once and so resumes the next. The chain does not
// grow the stack.
func TestChainOfResumes(t *testing.T) { chainOfResumes(t, 20_000) }

func chainOfResumes(t *testing.T, requests int) {
	t.Helper()
	slots := atmost.New(1, requests)
	g, err := guard.New(guard.Config{Stages: []guard.Stage{slots}, State: guard.NewStateAt(new(world))})
	if err != nil {
		t.Fatal(err)
	}
	first := guard.Ticket{Answer: new(guard.Answer)}
	req := request("/a", "x")
	if err := g.Admit(t.Context(), req, &first); err != nil {
		t.Fatal(err)
	}
	ended, deepest, callers := 0, 0, make([]uintptr, 256)
	for range requests {
		ticket := &guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(t.Context(), req, ticket); err != nil {
			t.Fatal(err)
		}
		order := ended
		ticket.WaitFunc(func(v headgate.Verdict) {
			if v != headgate.Allow || ended < order {
				t.Errorf("%v after %d", v, ended)
			}
			ended++
			deepest = max(deepest, runtime.Callers(0, callers))
			ticket.Done(guard.Outcome{})
		})
	}
	first.Done(guard.Outcome{})
	if used, _, waiting := slots.Slots(); ended != requests || used+waiting != 0 {
		t.Errorf("%d of %d ended; %d slots are used and %d wait", ended, requests, used, waiting)
	}
	if deepest > 100 {
		t.Errorf("the stack had %d calls, want at most 100", deepest)
	}
}

// A request ends while its resumption is queued. It leaves its stage, and its WaitFunc is not called.
func TestDoneBeforeItsResumption(t *testing.T) {
	slots := atmost.New(2, 9)
	g, err := guard.New(guard.Config{Stages: []guard.Stage{slots}})
	if err != nil {
		t.Fatal(err)
	}
	var holding, waiting [2]guard.Ticket
	for i := range holding {
		admit(t.Context(), t, g, &holding[i])
	}
	for i := range waiting {
		admit(t.Context(), t, g, &waiting[i])
	}
	waiting[0].WaitFunc(func(headgate.Verdict) {
		holding[1].Done(guard.Outcome{}) // This call resumes the second request, which is queued until it returns.
		waiting[1].Done(guard.Outcome{End: guard.ClientLeft})
	})
	waiting[1].WaitFunc(func(headgate.Verdict) { t.Error("told after Done") })
	holding[0].Done(guard.Outcome{})
	waiting[0].Done(guard.Outcome{})
	if used, _, waits := slots.Slots(); used+waits != 0 {
		t.Errorf("%d slots are used and %d requests wait, want none", used, waits)
	}
}
