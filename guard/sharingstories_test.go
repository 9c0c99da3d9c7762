package guard_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/share"
	"github.com/headgate/headgate/internal/testkit/race"
)

// servedBesideFlood has three owners with shares of 500, and a client that floods. Each cycle has a
// number of invented names. It gives the served part of the owners' demand within their shares.
func servedBesideFlood(t *testing.T, inventedPerCycle int) float64 {
	t.Helper()
	f, err := guard.NewFairShare(2000, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	g, _, clock := sharing(t, guard.Config{FairShare: f})
	const flood, owned, ticks = 10_000, 400, 400
	cycles := race.Fewer(60, 12)
	asked, served, invented := 0, 0, 0
	for cycle := range cycles {
		for tick := range ticks {
			for range flood / ticks {
				decide(t, g, request("/", "flood"))
			}
			for n := range 3 * owned / ticks {
				a := decide(t, g, request("/", fmt.Sprintf("owner%d", n)))
				if cycle >= cycles/2 {
					asked++
					if a.Verdict == headgate.Allow {
						served++
					}
				}
			}
			if cycle >= 5 && tick%(ticks/10) == 0 && tick/(ticks/10) < inventedPerCycle {
				invented++
				decide(t, g, request("/", fmt.Sprintf("invented%d", invented)))
			}
			clock.Advance(time.Second / ticks)
		}
	}
	return float64(served) / float64(asked)
}

// TestInventedNamesDoNotDilute: ten invented names a second, with one request each. Owners with a
// demand of four fifths of their shares get at least 80 % of it.
func TestInventedNamesDoNotDilute(t *testing.T) {
	if without := servedBesideFlood(t, 0); without < 0.999 {
		t.Fatalf("without invented names owners are served %.3f of what they ask for", without)
	}
	if with := servedBesideFlood(t, 10); with < 0.8 {
		t.Errorf("beside ten invented names a cycle owners are served %.3f of what they ask for within their shares, want 0.8 or more", with)
	}
}

// TestMaxMinMeetsSmallDemandsFirst: idle clients own most of the capacity. Clients with a small
// steady demand borrow all that they need before a flooding client gets more than its own share.
func TestMaxMinMeetsSmallDemandsFirst(t *testing.T) {
	f, err := guard.NewFairShare(2000, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	f.Division, f.Weights = share.MaxMin, map[string]int64{}
	for n := range 40 {
		f.Weights[fmt.Sprintf("idle%d", n)] = 1
	}
	g, _, clock := sharing(t, guard.Config{FairShare: f})
	cycles, ticks := race.Fewer(20, 8), 400
	for cycle := range cycles {
		for tick := range ticks {
			for n := range 3 {
				decide(t, g, request("/", fmt.Sprintf("small%d", n))) // 400 a cycle each
			}
			for range 25 {
				decide(t, g, request("/", "flood"))
			}
			if cycle == cycles-1 && tick == ticks-1 {
				break
			}
			clock.Advance(time.Second / time.Duration(ticks))
		}
	}
	flood := shareOf(t, g, "flood")
	for n := range 3 {
		if s := shareOf(t, g, fmt.Sprintf("small%d", n)); s.Admitted*10 < s.Size*9 {
			t.Errorf("%s has a size of %d and asked for %d, and %d were admitted; flood has a size of %d, and %d were admitted",
				s.Client, s.Size, s.Seen, s.Admitted, flood.Size, flood.Admitted)
		}
	}
}

// TestStartAmongManyClients: a new replica meets 200 clients. Their total demand is four fifths of its
// capacity, in eight bursts a cycle. Each cycle, twenty more clients get their own shares. The other
// clients share the capacity that is left.
func TestStartAmongManyClients(t *testing.T) {
	f, err := guard.NewFairShare(2000, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	g, _, clock := sharing(t, guard.Config{FairShare: f})
	const clients, each = 200, 8
	for cycle := range 30 {
		refused := 0
		for range each {
			for n := range clients {
				if decide(t, g, request("/", fmt.Sprintf("client%03d", n))).Verdict == headgate.Deny {
					refused++
				}
			}
			clock.Advance(time.Second / each)
		}
		if most := clients * each / 10; cycle > 0 && refused > most || cycle > clients/20 && refused > 0 {
			shares, _ := g.Shares()
			t.Errorf("cycle %d: %d of %d requests are refused, want at most %d; %d clients are known, and %d of %d units were used",
				cycle+1, refused, clients*each, most, len(shares.Clients)-1, shares.LastAdmitted, shares.LastCapacity)
		}
	}
}

// TestAdmittedCounterNeverFalls: the admitted units are exported as a counter. Prometheus takes a
// falling counter for a restart. In this test a waiting request leaves.
func TestAdmittedCounterNeverFalls(t *testing.T) {
	slow := bucket(t, "slow", "/p", headgate.Limit{Count: 10, Per: time.Second, Burst: 1})
	slow.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Second, MaxWaiters: 1}
	g, _, _ := sharing(t, guard.Config{FairShare: among(t), Rules: []guard.Rule{slow}})
	decide(t, g, request("/p", "a"))
	waits := decide(t, g, request("/p", "a"))
	before := shareOf(t, g, "a").AdmittedCounter
	if waits.Verdict != headgate.Wait || before == 0 {
		t.Fatalf("the second: %v, of %d admitted", waits.Verdict, before)
	}
	if err := g.Cancel(t.Context(), waits); err != nil {
		t.Fatal(err)
	}
	if after := shareOf(t, g, "a").AdmittedCounter; after < before {
		t.Errorf("the total falls from %d to %d", before, after)
	}
}

// TestOffForgetsAsIdle: while fair share is off, clients are forgotten like idle clients, and not
// earlier.
func TestOffForgetsAsIdle(t *testing.T) {
	for _, c := range []struct {
		cycles int
		known  bool
	}{{5, true}, {31, false}} {
		f := among(t, func(f *guard.FairShare) { f.Weights = nil })
		g, store, clock := sharing(t, guard.Config{FairShare: f})
		decide(t, g, request("/", "known"))
		for _, mode := range []guard.Mode{guard.Off, guard.Enforce} {
			turned := *f
			turned.Mode = mode
			if err := g.Reload(guard.Config{FairShare: &turned, Store: store, Clock: clock.Now}); err != nil {
				t.Fatal(err)
			}
			if mode == guard.Off {
				clock.Advance(time.Duration(c.cycles) * f.Cycle)
			}
		}
		if known := shareOf(t, g, "known").Client != ""; known != c.known {
			t.Errorf("after %d cycles of off the client is known: %v, want %v", c.cycles, known, c.known)
		}
	}
}
