package guard_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// delaying is a guard in a synctest bubble, with a limit of 100 a second and one at once.
func delaying(t *testing.T, maxWait time.Duration, algorithm headgate.Algorithm) *guard.Guard {
	t.Helper()
	r := byClient(t, "slow", "/p", headgate.Limit{Count: 100, Per: time.Second, Burst: 1})
	r.Policies[0].Algorithm = algorithm
	if algorithm == headgate.LeakyBucket {
		r.Policies[0].Limit.Burst = 2000
	}
	r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: maxWait}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Rules: []guard.Rule{r}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestThousandWaiters: a thousand requests wait, and every second one is cancelled. No request
// departs early, and the others move up to the next free departure. Unused departures serve the
// next request.
func TestThousandWaiters(t *testing.T) {
	for _, algorithm := range []headgate.Algorithm{headgate.TokenBucket, headgate.LeakyBucket} {
		t.Run(algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { thousandWaiters(t, delaying(t, time.Minute, algorithm)) })
		})
	}
}

func thousandWaiters(t *testing.T, g *guard.Guard) {
	t.Helper()
	decide(t, g, request("/p", "a")) // The first request goes at once.
	began := time.Now()
	var departed, cancelled atomic.Int64
	var waiting sync.WaitGroup
	for i := range 1000 {
		a := decide(t, g, request("/p", "a"))
		want := time.Duration(i+1) * 10 * time.Millisecond
		if a.Verdict != headgate.Wait || a.RetryAfter() != want {
			t.Fatalf("request %d: %v in %v, want a departure in %v", i, a.Verdict, a.RetryAfter(), want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if i%2 == 1 {
			time.AfterFunc(5*time.Millisecond, cancel)
		}
		waiting.Go(func() {
			defer cancel()
			switch err := g.Wait(ctx, a); {
			case err == nil:
				departed.Add(1)
				want := time.Duration(i/2+1) * 10 * time.Millisecond
				if elapsed := time.Since(began); elapsed < want || elapsed > want+2*time.Millisecond {
					t.Errorf("request %d departs after %v, want %v", i, elapsed, want)
				}
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	if departed.Load() != 500 || cancelled.Load() != 500 || g.Waiting("slow") != 0 {
		t.Errorf("%d departed, %d were cancelled and %d still wait, want 500, 500 and 0",
			departed.Load(), cancelled.Load(), g.Waiting("slow"))
	}
}

// A client leaves at the moment of its departure. The departure is not lost.
func TestWaitPrefersTheDeparture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := delaying(t, time.Minute, headgate.TokenBucket)
		decide(t, g, request("/p", "a"))
		a := decide(t, g, request("/p", "a"))
		ctx, cancel := context.WithCancel(t.Context())
		<-time.After(time.Second)
		synctest.Wait()
		cancel()
		if err := g.Wait(ctx, a); err != nil {
			t.Errorf("Wait after the departure gives %v", err)
		}
		if err := g.Wait(ctx, a); err != nil {
			t.Errorf("a second Wait gives %v", err)
		}
	})
}

// A front forgets to call Wait or Cancel. The place is occupied only until the departure.
func TestForgottenWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := delaying(t, time.Minute, headgate.TokenBucket)
		decide(t, g, request("/p", "a"))
		decide(t, g, request("/p", "a"))
		if n := g.Waiting("slow"); n != 1 {
			t.Errorf("%d wait, want 1", n)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if n := g.Waiting("slow"); n != 0 {
			t.Errorf("%d wait after the departure, want 0", n)
		}
	})
}
