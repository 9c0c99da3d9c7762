package guard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// TestRulesAreTheGuardsOwn: a program changes its slice of rules for the next reload. The guard is not
// affected before that reload.
func TestRulesAreTheGuardsOwn(t *testing.T) {
	rules := []guard.Rule{byClient(t, "a", "/p", perMinute(10))}
	g, _ := newGuard(t, guard.Config{Rules: rules})
	rules[0].Soft, rules[0].Mode = 1, guard.Shadow
	if a := decide(t, g, request("/p", "x")); a.Closest() == nil || a.Closest().Decision.Reason != headgate.WithinLimit {
		t.Error("a rule was changed without a reload")
	}
}

// TestBegin: a request is decided by the rules of Begin, also when a reload came in between. The
// new rules may need facts that the front has left out.
func TestBegin(t *testing.T) {
	part, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	byIP := byClient(t, "ip", "/p", perMinute(10))
	byIP.Key = []rule.Part{part}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "client", "/p", perMinute(10))}})
	var a guard.Answer
	for n, want := range []string{"client", "ip"} {
		needs := g.Begin(&a)
		if err := g.Reload(guard.Config{Rules: []guard.Rule{byIP}, Store: g.Store()}); err != nil {
			t.Fatal(err)
		}
		req := request("/p", "x")
		if needs&rule.NeedIP == 0 {
			req.IP = netip.Addr{}
		}
		if err := g.Decide(t.Context(), req, &a); err != nil {
			t.Fatal(err)
		}
		if c := a.Closest(); c.Policy != want || c.Shared {
			t.Errorf("request %d: decided by %s, shared %v; want %s", n, c.Policy, c.Shared, want)
		}
	}
	if err := g.Decide(t.Context(), request("/p", "x"), &a); err != nil || a.Closest().Policy != "ip" {
		t.Errorf("without Begin: %v, by %s", err, a.Closest().Policy)
	}
	other, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "other", "/p", perMinute(10))}})
	g.Begin(&a)
	if err := other.Decide(t.Context(), request("/p", "x"), &a); err != nil || a.Closest().Policy != "other" {
		t.Errorf("begun by another guard: %v, by %s", err, a.Closest().Policy)
	}
}

// TestListedBansFollowRules: Bans lists the enforced bans, and the mode of each.
func TestListedBansFollowRules(t *testing.T) {
	trial, login := byClient(t, "trial", "/p", perMinute(1)), byClient(t, "login", "/p", perMinute(1))
	trial.Mode, trial.Ban, login.Ban = guard.Shadow, guard.Ban{For: time.Hour}, guard.Ban{For: time.Hour}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{trial, login}})
	for range 2 {
		decide(t, g, request("/p", "x"))
	}
	trial.Mode = guard.Enforce
	if err := g.Reload(guard.Config{Rules: []guard.Rule{trial}, Store: g.Store()}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // Before and after the next attempt.
		bans, _ := g.Bans(clock.Now().Time())
		if len(bans) != 1 || bans[0].Rule != "trial" || bans[0].Shadow {
			t.Errorf("bans are %+v, want that of trial, enforced", bans)
		}
		decide(t, g, request("/p", "x"))
	}
}

// TestMoreBans: Bans reports that there are more bans than it lists, while there are.
func TestMoreBans(t *testing.T) {
	r := byClient(t, "login", "/p", perMinute(0))
	r.Ban = guard.Ban{After: perMinute(0), For: time.Hour}
	clock := storetest.NewClock()
	store, err := memory.New(memory.Config{MaxMemory: 8 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}, Store: store})
	for i := range 10_001 {
		decide(t, g, request("/p", fmt.Sprint(i)))
	}
	for range 2 {
		if bans, more := g.Bans(clock.Now().Time()); len(bans) != 10_000 || !more {
			t.Errorf("%d bans, and more: %v", len(bans), more)
		}
	}
	clock.Advance(2 * time.Hour)
	g.Bans(clock.Now().Time())
	if bans, more := g.Bans(clock.Now().Time()); len(bans) != 0 || more {
		t.Errorf("when all have ended: %d bans, and more: %v", len(bans), more)
	}
}

// TestReloadWhileWaiting: requests wait, leave and are cancelled while rules are added and removed. No
// place is lost.
func TestReloadWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := bucket(t, "slow", "/p", headgate.Limit{Count: 1000, Per: time.Second, Burst: 1})
		slow.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Second, MaxWaiters: 20}
		slow.Ban = guard.Ban{After: headgate.Limit{Count: 1000, Per: time.Second}, For: time.Second}
		trial := slow
		trial.Name, trial.Mode = "trial", guard.Shadow
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		g, err := guard.New(guard.Config{Rules: []guard.Rule{slow, trial}, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for worker := range uint64(8) {
			all.Go(func() { ask(t, g, rand.New(rand.NewPCG(worker, 1))) })
		}
		all.Go(func() {
			for i := range 500 {
				rules := []guard.Rule{trial, slow}[i%2:]
				if err := g.Reload(guard.Config{Rules: rules, Store: store}); err != nil {
					t.Error(err)
				}
				g.Bans(time.Now())
				time.Sleep(time.Millisecond) //nolint:forbidigo // because it is the time of the bubble.
			}
		})
		all.Wait()
		time.Sleep(time.Minute) //nolint:forbidigo // because it is the time of the bubble, in which every departure comes.
		if n, m := g.Waiting("slow"), g.Waiting("trial"); n != 0 || m != 0 {
			t.Errorf("%d and %d wait when all are gone", n, m)
		}
	})
}

// ask makes requests, and waits for some of them.
func ask(t *testing.T, g *guard.Guard, rnd *rand.Rand) {
	t.Helper()
	var a guard.Answer
	for range 500 {
		if err := g.Decide(t.Context(), request("/p", fmt.Sprint(rnd.IntN(3))), &a); err != nil {
			t.Error(err)
		}
		if rnd.IntN(3) == 0 {
			if err := g.Cancel(t.Context(), &a); err != nil {
				t.Error(err)
			}
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(30_000))*time.Microsecond)
		if err := g.Wait(ctx, &a); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		cancel()
	}
}
