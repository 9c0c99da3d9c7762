package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/storetest"
)

// A reload changes capacity, weights and mode at once. Clients and used units are kept. When fair
// share is left out, it starts with empty counts later.
func TestFairShareReload(t *testing.T) {
	g, _, _ := sharing(t, guard.Config{FairShare: among(t)})
	mode := func(m guard.Mode) func(*guard.FairShare) { return func(f *guard.FairShare) { f.Mode = m } }
	units := func(n int64) func(*guard.FairShare) { return func(f *guard.FairShare) { f.Capacity = n } }
	for i, c := range []struct {
		reload  []func(*guard.FairShare) // nil removes fair share, and an empty slice keeps it unchanged
		verdict headgate.Verdict
		used    int64
		refused int64
	}{
		{nil, headgate.Allow, 1, 0},
		{[]func(*guard.FairShare){}, headgate.Allow, 2, 0},
		{nil, headgate.Deny, 2, 1},
		{[]func(*guard.FairShare){mode(guard.Shadow)}, headgate.Allow, 2, 2},
		{[]func(*guard.FairShare){mode(guard.Off)}, headgate.Allow, -1, 0},
		{[]func(*guard.FairShare){mode(guard.Enforce)}, headgate.Deny, 2, 3},
		{[]func(*guard.FairShare){units(12)}, headgate.Allow, 3, 3},
		{[]func(*guard.FairShare){units(2)}, headgate.Deny, 3, 4},
		{[]func(*guard.FairShare){units(8), func(f *guard.FairShare) { f.Weights["a"] = 3 }}, headgate.Allow, 4, 4},
	} {
		if c.reload != nil {
			if err := g.Reload(guard.Config{FairShare: among(t, c.reload...), Store: g.Store()}); err != nil {
				t.Fatal(err)
			}
		}
		if a := decide(t, g, request("/p", "a")); a.Verdict != c.verdict {
			t.Errorf("step %d: %v, want %v", i, a.Verdict, c.verdict)
		}
		if _, there := g.Shares(); there != (c.used >= 0) {
			t.Errorf("step %d: shares are told: %v", i, there)
		} else if there {
			counts(t, g, "a", c.used, c.refused)
		}
	}
	if err := g.Reload(guard.Config{Store: g.Store()}); err != nil {
		t.Fatal(err)
	}
	if a := decide(t, g, request("/p", "")); a.Verdict != headgate.Allow || len(a.Results) != 0 {
		t.Errorf("without fair share: %v, %+v", a.Verdict, a.Results)
	}
	if _, there := g.Shares(); there {
		t.Error("shares are told of where there are none")
	}
	if err := g.Reload(guard.Config{FairShare: among(t), Store: g.Store()}); err != nil {
		t.Fatal(err)
	}
	decide(t, g, request("/p", "a"))
	counts(t, g, "a", 1, 0)
}

// The caller may change its FairShare after New: the guard is not affected.
func TestFairShareIsTheGuardsOwn(t *testing.T) {
	f := among(t)
	g, _, _ := sharing(t, guard.Config{FairShare: f})
	f.Mode, f.Capacity, f.Anonymous, f.Weights["c"] = guard.Shadow, 0, "a", 1
	if a := decide(t, g, request("/p", "")); a.Verdict != headgate.Deny {
		t.Errorf("an anonymous request: %v", a.Verdict)
	}
	if shares, _ := g.Shares(); shares.Capacity != 4 || len(shares.Clients) != 2 {
		t.Errorf("%+v", shares)
	}
}

// Consecutive guards with one State share one capacity.
func TestSharesOfGuardsThatFollow(t *testing.T) {
	state, clock := guard.NewState(), storetest.NewClock()
	for i, want := range []headgate.Verdict{headgate.Allow, headgate.Allow, headgate.Deny} {
		g, err := guard.New(guard.Config{FairShare: among(t), State: state, Clock: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		if a := decide(t, g, request("/p", "a")); a.Verdict != want {
			t.Errorf("guard %d: %v, want %v", i, a.Verdict, want)
		}
	}
}

// A guard begins an answer before a reload. The answer is decided as begun, and its units are
// returned to the limiter that they came from.
func TestShareIsReturnedToItsOwner(t *testing.T) {
	g, _, clock := sharing(t, guard.Config{FairShare: among(t)})
	var a guard.Answer
	g.Begin(&a)
	with := guard.Config{FairShare: among(t), Store: g.Store()}
	for _, c := range []guard.Config{{Store: g.Store()}, with} { // Without fair share, and with another one.
		if err := g.Reload(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Decide(t.Context(), request("/p", "a"), &a); err != nil || len(a.Results) != 1 {
		t.Fatalf("%v, %+v", err, a.Results)
	}
	decide(t, g, request("/p", "a"))
	counts(t, g, "a", 1, 0)
	if err := g.Cancel(t.Context(), &a); err != nil {
		t.Error(err)
	}
	counts(t, g, "a", 1, 0)
	// In a later cycle there are no units to return.
	late := decide(t, g, request("/p", "a"))
	clock.Advance(time.Second)
	decide(t, g, request("/p", "a"))
	if err := g.Cancel(t.Context(), late); err != nil {
		t.Error(err)
	}
	counts(t, g, "a", 1, 0)
}

// An answer after an error, or for another request, has no units of the previous request.
func TestAnswerForgetsItsShare(t *testing.T) {
	g, _, _ := sharing(t, guard.Config{FairShare: among(t)})
	var a guard.Answer
	bad := request("/p", "a")
	bad.Cost = -1
	for _, next := range []*headgate.Request{bad, request("/p", "")} {
		if err := g.Decide(t.Context(), request("/p", "b"), &a); err != nil {
			t.Fatal(err)
		}
		_ = g.Decide(t.Context(), next, &a) // Decide may fail. The test checks the remaining units of b.
		if err := g.Cancel(t.Context(), &a); err != nil {
			t.Error(err)
		}
	}
	counts(t, g, "b", 2, 0)
}

// With CountOnce, retries of one request count once.
func TestShareCountsRetriesOnce(t *testing.T) {
	once := func(f *guard.FairShare) { f.CountOnce, f.IDHeader = true, "X-Request-Id" }
	g, _, _ := sharing(t, guard.Config{FairShare: among(t, once)})
	for _, id := range []string{"r1", "r2", "r3", "r3", "r3", "r3"} {
		req := request("/p", "a")
		req.Header = headers{"X-Client-Id": "a", "X-Request-Id": id}
		decide(t, g, req)
	}
	if s := shareOf(t, g, "a"); s.Seen != 3 || s.Admitted != 2 || s.Refused != 4 {
		t.Errorf("two that pass and one that is tried four times: %+v", s)
	}
	decide(t, g, request("/p", "b"))
	decide(t, g, request("/p", "b"))
	decide(t, g, request("/p", "b")) // Without an identifier, each attempt is a request.
	if s := shareOf(t, g, "b"); s.Seen != 3 {
		t.Errorf("three without an id: %+v", s)
	}
}

// A caller leaves before the store answers, and the fallback refuses. The share is free for others.
func TestShareOfWhoLeaves(t *testing.T) {
	g, _, _ := sharing(t, guard.Config{
		FairShare: among(t), Store: deaf{}, StoreTimeout: time.Hour, Rules: []guard.Rule{byClient(t, "r", "/p", perMinute(9))},
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var a guard.Answer
	if err := g.Decide(ctx, request("/p", "a"), &a); err != nil || !errors.Is(a.StoreError, guard.ErrCallerGone) {
		t.Fatalf("%v, %v", err, a.StoreError)
	}
	counts(t, g, "a", 0, 0)
}

// Fair share uses the machine's clock, and in a synctest bubble that of the bubble. Cycles end by
// themselves.
func TestFairShareByTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := guard.New(guard.Config{FairShare: among(t)})
		if err != nil {
			t.Fatal(err)
		}
		for cycle := range 3 {
			began := headgate.Instant(time.Now().UnixNano())
			for i, want := range []headgate.Verdict{headgate.Allow, headgate.Allow, headgate.Deny} {
				a := decide(t, g, request("/p", "a"))
				if at := a.Closest().Decision.At; a.Verdict != want || at != began {
					t.Errorf("cycle %d, request %d: %v at %d, want %v at %d", cycle, i, a.Verdict, at, want, began)
				}
			}
			<-time.After(time.Second)
			decide(t, g, request("/p", "b"))
			<-time.After(time.Second)
		}
	})
}

// With concurrent requests, reloads and departures, no cycle admits more than the capacity. The
// count of each cycle is what the service has seen.
func TestSharesUnderLoad(t *testing.T) {
	const capacity = 1000
	const workers, requests = 4, 4000
	clock := storetest.NewClock()
	configs := make([]guard.Config, 3)
	for i, mode := range []guard.Mode{guard.Enforce, guard.Enforce, guard.Shadow} {
		configs[i] = guard.Config{Clock: clock.Now, Store: inMemory(t, clock), FairShare: among(t, func(f *guard.FairShare) {
			f.Capacity, f.Mode, f.NewClientsPerCycle, f.ForgetAfter = capacity, mode, i, 1+i
		})}
		configs[i].Store = configs[0].Store
	}
	g, err := guard.New(configs[0])
	if err != nil {
		t.Fatal(err)
	}
	var admitted [200]atomic.Int64 // by cycle
	var all, reloads sync.WaitGroup
	stop := make(chan struct{})
	reloads.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := g.Reload(configs[i%3]); err != nil {
				t.Error(err)
			}
			g.Shares()
		}
	})
	for worker := range uint64(workers) {
		all.Go(func() {
			rnd, a := rand.New(rand.NewPCG(worker, 5)), new(guard.Answer)
			for range requests {
				clock.Advance(time.Duration(rnd.IntN(2_000_000)))
				if err := g.Decide(t.Context(), request("/p", fmt.Sprint(rnd.IntN(20))), a); err != nil {
					t.Error(err)
				}
				d := a.Results[0].Decision
				cycle := d.At.Sub(storetest.Start) / time.Second
				if d.Verdict != headgate.Allow {
					continue
				}
				admitted[cycle].Add(1)
				if rnd.IntN(4) == 0 {
					admitted[cycle].Add(-1)
					if err := g.Cancel(t.Context(), a); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	close(stop)
	reloads.Wait()
	for cycle := range admitted {
		if n := admitted[cycle].Load(); n > capacity {
			t.Errorf("cycle %d admits %d of %d", cycle, n, capacity)
		}
	}
}

// TestFairShareAllocatesNothing: an allowed request and a refused one allocate nothing.
func TestFairShareAllocatesNothing(t *testing.T) {
	ample := func(f *guard.FairShare) { f.Capacity = 1 << 40 }
	byIP := func(f *guard.FairShare) { f.Capacity, f.Client = 1<<40, partOf(t, "ip") }
	limited := []guard.Rule{byClient(t, "a", "/p", perMinute(1<<40))}
	for name, c := range map[string]struct {
		config guard.Config
		client string
		want   headgate.Verdict
	}{
		"passes":                  {guard.Config{FairShare: among(t, ample)}, "a", headgate.Allow},
		"passes by its address":   {guard.Config{FairShare: among(t, byIP)}, "a", headgate.Allow},
		"passes with a rule":      {guard.Config{FairShare: among(t, ample), Rules: limited}, "a", headgate.Allow},
		"passes in shadow":        {guard.Config{FairShare: among(t, inShadow), Rules: limited}, "a", headgate.Allow},
		"refused":                 {guard.Config{FairShare: among(t), Rules: limited}, "a", headgate.Deny},
		"refused by the rules":    {guard.Config{FairShare: among(t, ample), Rules: []guard.Rule{byClient(t, "a", "/p", perMinute(1))}}, "a", headgate.Deny},
		"anonymous":               {guard.Config{FairShare: among(t)}, "", headgate.Deny},
		"with a name of its own":  {guard.Config{FairShare: among(t, func(f *guard.FairShare) { f.Capacity = 1 << 40 })}, "a\x00", headgate.Allow},
		"one of many, and others": {guard.Config{FairShare: among(t, func(f *guard.FairShare) { f.NewClientsPerCycle = 0 })}, "stranger", headgate.Deny},
	} {
		g, _, _ := sharing(t, c.config)
		req, a, ctx := request("/p", c.client), &guard.Answer{}, t.Context()
		for range 5 {
			if err := g.Decide(ctx, req, a); err != nil {
				t.Fatal(err)
			}
		}
		if a.Verdict != c.want {
			t.Errorf("%s: %v, want %v", name, a.Verdict, c.want)
		}
		if n := testing.AllocsPerRun(200, func() { _ = g.Decide(ctx, req, a) }); n != 0 {
			t.Errorf("%s: a decision allocates %v times", name, n)
		}
	}
}

// BenchmarkFairShare decides by fair share only: for 1,000 clients that pass, and for one that is
// refused.
func BenchmarkFairShare(b *testing.B) {
	part, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		b.Fatal(err)
	}
	names := make([]*headgate.Request, 1000)
	weights := map[string]int64{}
	for i := range names {
		name := fmt.Sprintf("client-%03d", i)
		names[i], weights[name] = request("/p", name), 1
	}
	for name, capacity := range map[string]int64{"passes": 1 << 40, "refused": 1000} {
		f, err := guard.NewFairShare(capacity, part.String())
		if err != nil {
			b.Fatal(err)
		}
		f.Weights, f.Cycle = weights, time.Hour
		b.Run(name, func(b *testing.B) {
			g, err := guard.New(guard.Config{FairShare: f})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				var a guard.Answer
				ctx := b.Context()
				for i := 0; pb.Next(); i++ {
					if err := g.Decide(ctx, names[i%len(names)], &a); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
