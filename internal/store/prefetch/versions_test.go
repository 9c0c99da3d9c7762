package prefetch_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit/twin"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/versions"
)

// TestTwoVersions: two instances have different versions of a limit on one key. In any
// interval they admit together at most the more generous version and a constant, whatever
// the order of requests and the stashes.
func TestTwoVersions(t *testing.T) {
	for name, d := range versions.Deploys() {
		t.Run(name, func(t *testing.T) {
			ahead := uint64(0)
			for seed := range seeds(2) {
				synctest.Test(t, func(t *testing.T) { ahead += alternate(t, seed, d) })
				synctest.Test(t, func(t *testing.T) { atOnce(t, seed, d) })
			}
			if ahead == 0 {
				t.Error("no unit came from a stash: the traffic shows nothing")
			}
		})
	}
}

// versionsOf makes an instance for each version.
func versionsOf(t *testing.T, seed uint64, d versions.Deploy, delay time.Duration) (w *world, ids [2]headgate.PolicyID) {
	t.Helper()
	w = newWorld(t, seed, 0, 0, delay)
	for range 2 {
		w.stores = append(w.stores, behind(t, w.source, prefetch.Config{MaxKeys: 7})) // The table is small because Stats reads all of it.
	}
	return w, [2]headgate.PolicyID{prepare(t, w.stores[0], d.Was), prepare(t, w.stores[1], d.Is)}
}

// alternate sends requests for one unit in turns of random lengths. It also compares the
// counts of the source with each version alone. ahead is the number of units from stashes.
func alternate(t *testing.T, seed uint64, d versions.Deploy) (ahead uint64) {
	t.Helper()
	w, ids := versionsOf(t, seed, d, 0)
	alone := [2]twin.Key{twin.New(counted(t, d.Was)), twin.New(counted(t, d.Is))}
	var passed [2]int64
	r, short := rand.New(rand.NewPCG(seed, 7)), int64(0)
	for n := 0; n < 1000; {
		which, gap := r.IntN(2), time.Duration(1+r.IntN(8))*time.Millisecond
		for range 1 + r.IntN(40) {
			rest(time.Duration(r.Int64N(int64(gap))))
			for i := range alone {
				if alone[i].Do(w.clock(), 1, headgate.Take).Verdict == headgate.Allow {
					passed[i]++
				}
			}
			w.ask(w.stores[which], []string{"k"}, []headgate.Op{{Key: "k", Policy: ids[which], Cost: 1}})
			short = max(short, min(passed[0], passed[1])-w.taken("k"))
			n++
		}
	}
	if short > d.Constant() {
		t.Errorf("%d fewer are counted than the stricter alone admits, more than %d", short, d.Constant())
	}
	d.Judge(t, w.spends["k"])
	return w.stores[0].Stats().Spent + w.stores[1].Stats().Spent
}

// atOnce sends requests of both instances at the same times, while earlier answers are still
// on their way.
func atOnce(t *testing.T, seed uint64, d versions.Deploy) {
	t.Helper()
	w, ids := versionsOf(t, seed, d, 20*time.Millisecond)
	var all sync.WaitGroup
	for i, s := range w.stores {
		for range 2 {
			all.Go(func() {
				w.busy(4*time.Second, func() {
					w.ask(s, []string{"k"}, []headgate.Op{{Key: "k", Policy: ids[i], Cost: 1 + int64(w.upTo(2))}})
				})
			})
		}
	}
	all.Wait()
	d.Judge(t, w.spends["k"])
}

// counted gives the policy that the source counts by.
func counted(t *testing.T, p headgate.Policy) headgate.Policy {
	t.Helper()
	n := &noting{Source: newSmallSource(t, func() headgate.Instant { return epoch })}
	prepare(t, behind(t, n, prefetch.Config{}), p)
	return n.policy
}

// taken gives the units that the source has counted for a key: units that passed, unspent
// units and expired units.
func (w *world) taken(name string) int64 {
	sum := int64(0)
	for _, s := range w.spends[name] {
		sum += s.Cost
	}
	for _, s := range w.stores {
		st := s.Stats()
		sum += int64(st.Granted - st.Spent)
	}
	return sum
}
