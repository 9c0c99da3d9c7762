package prefetch_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestUseOfTheLimit: the demand is above the limit, at eight instances or at one. Nearly the
// whole limit is used, with holds of W/200. The rest is h/(W+h) for a log, and the unspent
// units of expired stashes.
func TestUseOfTheLimit(t *testing.T) {
	for _, c := range []struct {
		policy headgate.Policy
		demand float64 // A multiple of the limit.
		busy   int
		want   float64 // The smallest used part of the limit.
	}{
		{perSecond(1000, 5*time.Millisecond), 1.3, 8, 0.99},
		{perSecond(1000, 5*time.Millisecond), 1.3, 1, 0.985},
		{perSecond(10_000, 5*time.Millisecond), 1.1, 8, 0.985},
		{perSecond(10_000, 5*time.Millisecond), 1.3, 1, 0.985},
		{perSecond(10, 5*time.Millisecond), 3, 8, 0.9},
		{headgate.Policy{Limit: headgate.Limit{Count: 10_000, Per: time.Second}, Hold: 5 * time.Millisecond}, 1.2, 8, 0.98},
		{headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10_000, Per: time.Second}, Hold: 5 * time.Millisecond}, 1.2, 8, 0.98},
		{headgate.Policy{
			Algorithm: headgate.SlidingWindow, SubWindows: 10, Limit: headgate.Limit{Count: 10_000, Per: time.Second}, Hold: 5 * time.Millisecond,
		}, 1.2, 8, 0.98},
	} {
		if race.On && c.policy.Limit.Count > 1000 {
			continue // The judgement needs more seconds, and the algorithms have other simulations.
		}
		name := fmt.Sprintf("%s %s, %v of it at %d", c.policy.Algorithm, c.policy.Limit, c.demand, c.busy)
		t.Run(name, func(t *testing.T) {
			plain := c.policy
			plain.Hold = 0
			without, _, calls := used(t, plain, c.demand, c.busy)
			with, st, fewer := used(t, c.policy, c.demand, c.busy)
			t.Logf("used without a hold %.1f %% for %.3f calls a request; with it %.1f %% for %.3f; %.1f %% expire",
				100*without, calls, 100*with, fewer, 100*float64(st.Expired)/float64(max(st.Granted, 1)))
			if with < c.want*min(without, 1) && !race.On { // One second is too short for a judgement.
				t.Errorf("%.3f of the limit is used with a hold, %.3f without: %+v", with, without, st)
			}
		})
	}
}

// used gives the used part of the limit, and the calls of the source for each request.
func used(t *testing.T, p headgate.Policy, demand float64, busy int) (part float64, sum prefetch.Stats, calls float64) {
	t.Helper()
	seconds := int(seeds(3))
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 8, 0, 200*time.Microsecond)
		gap := float64(p.Limit.Per) / float64(p.Limit.Count) * float64(busy) / demand
		var all sync.WaitGroup
		for i := range busy {
			s, r := w.stores[i], rand.New(rand.NewPCG(7, uint64(i)))
			id := prepare(t, s, p)
			all.Go(func() {
				for end := time.Now().Add(time.Duration(seconds+1) * time.Second); time.Now().Before(end); {
					rest(time.Duration(r.ExpFloat64() * gap))
					all.Go(func() { w.ask(s, []string{"k"}, []headgate.Op{{Key: "k", Policy: id, Cost: 1}}) })
				}
			})
		}
		all.Wait()
		passed := 0
		first := headgate.Instant(1 << 62)
		for _, sp := range w.spends["k"] {
			first = min(first, sp.At)
		}
		for _, sp := range w.spends["k"] {
			// The first second is left out: it has the burst of a bucket.
			if at := sp.At.Sub(first); at >= time.Second && at < time.Duration(seconds+1)*time.Second {
				passed++
			}
		}
		part = float64(passed) / float64(p.Limit.Count) / float64(seconds)
		calls = float64(w.source.calls.Load()) / float64(w.asked)
		for _, s := range w.stores {
			one := s.Stats()
			sum.Granted += one.Granted
			sum.Expired += one.Expired
		}
	})
	return part, sum, calls
}
