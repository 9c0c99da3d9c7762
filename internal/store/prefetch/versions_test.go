package prefetch_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/limit/twin"
	"github.com/headgate/headgate/internal/store/prefetch"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// deploy is a rolling deploy: two instances have two versions of one limit.
type deploy struct{ was, is headgate.Policy }

// constant is the number of units that two versions may admit beyond the bound of each alone:
// the larger Burst or Count.
func (d deploy) constant() int64 { return max(limit.Room(d.was), limit.Room(d.is)) }

// early lengthens the interval of the bound. A unit that is spent in an interval may have been
// granted up to a hold earlier. With one hold and one division into sub-windows, the bound
// is that of the limits.
func (d deploy) early() time.Duration {
	if d.was.Hold == d.is.Hold && d.was.SubWindows == d.is.SubWindows {
		return 0
	}
	return max(d.was.Hold, d.is.Hold)
}

// admits bounds the units that one version alone admits between two times, both included.
func admits(p headgate.Policy, from, to headgate.Instant) int64 {
	count, per := p.Limit.Count, headgate.Instant(p.Limit.Per)
	switch p.Algorithm {
	case headgate.FixedWindow:
		return count * int64(to/per-from/per+1)
	case headgate.SlidingLog:
		return count * int64((to-from)/per+1)
	case headgate.SlidingWindow:
		// At each take, N neighbouring sub-windows hold at most Count units.
		n := headgate.Instant(p.SubWindows)
		return count * int64((to*n/per-from*n/per+n)/n)
	default:
		return limit.Room(p) + int64(to-from)*count/int64(per)
	}
}

// deploys has a pair for each algorithm that can be prefetched.
func deploys() map[string]deploy {
	hold := 50 * time.Millisecond
	value := func(a headgate.Algorithm, count, burst int64, n int, hold time.Duration) headgate.Policy {
		return headgate.Policy{
			Algorithm: a, Limit: headgate.Limit{Count: count, Per: time.Second, Burst: burst}, SubWindows: n, Hold: hold, Batch: count / 8,
		}
	}
	return map[string]deploy{
		"log":             {value(headgate.SlidingLog, 80, 0, 0, hold), value(headgate.SlidingLog, 120, 0, 0, hold)},
		"bucket":          {value(headgate.TokenBucket, 100, 40, 0, hold), value(headgate.TokenBucket, 160, 80, 0, hold)},
		"bucket, burst":   {value(headgate.TokenBucket, 100, 20, 0, hold), value(headgate.TokenBucket, 100, 100, 0, hold)},
		"bucket, rate":    {value(headgate.TokenBucket, 60, 60, 0, hold), value(headgate.TokenBucket, 400, 60, 0, hold)},
		"bucket, holds":   {value(headgate.TokenBucket, 100, 60, 0, hold), value(headgate.TokenBucket, 120, 60, 0, 4*hold)},
		"bucket, one":     {value(headgate.TokenBucket, 100, 60, 0, hold), headgate.Policy{Limit: headgate.Limit{Count: 120, Per: time.Second, Burst: 60}}},
		"fixed":           {value(headgate.FixedWindow, 80, 0, 0, hold), value(headgate.FixedWindow, 120, 0, 0, hold)},
		"sliding":         {value(headgate.SlidingWindow, 80, 0, 10, hold), value(headgate.SlidingWindow, 120, 0, 10, hold)},
		"sliding, others": {value(headgate.SlidingWindow, 80, 0, 4, 2*hold), value(headgate.SlidingWindow, 120, 0, 10, 2*hold)},
	}
}

// TestTwoVersions: two instances have different versions of a limit on one key. In any
// interval they admit together at most the more generous version and a constant, whatever
// the order of requests and the stashes.
func TestTwoVersions(t *testing.T) {
	for name, d := range deploys() {
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
func versionsOf(t *testing.T, seed uint64, d deploy, delay time.Duration) (w *world, ids [2]headgate.PolicyID) {
	t.Helper()
	w = newWorld(t, seed, 0, 0, delay)
	for range 2 {
		w.stores = append(w.stores, behind(t, w.source, prefetch.Config{MaxKeys: 7})) // The table is small because Stats reads all of it.
	}
	return w, [2]headgate.PolicyID{prepare(t, w.stores[0], d.was), prepare(t, w.stores[1], d.is)}
}

// alternate sends requests for one unit in turns of random lengths. It also compares the
// counts of the source with each version alone. ahead is the number of units from stashes.
func alternate(t *testing.T, seed uint64, d deploy) (ahead uint64) {
	t.Helper()
	w, ids := versionsOf(t, seed, d, 0)
	alone := [2]twin.Key{twin.New(counted(t, d.was)), twin.New(counted(t, d.is))}
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
	if short > d.constant() {
		t.Errorf("%d fewer are counted than the stricter alone admits, more than %d", short, d.constant())
	}
	w.judgeVersions(d)
	return w.stores[0].Stats().Spent + w.stores[1].Stats().Spent
}

// atOnce sends requests of both instances at the same times, while earlier answers are still
// on their way.
func atOnce(t *testing.T, seed uint64, d deploy) {
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
	w.judgeVersions(d)
}

// TestTwoVersionsOnRedis is TestTwoVersions on a real server, in turns, with clocks that the
// test moves.
func TestTwoVersionsOnRedis(t *testing.T) {
	server := testserver.Start(t)
	for name, d := range deploys() {
		t.Run(name, func(t *testing.T) {
			clock := &manual{now: 377 * time.Millisecond}
			w := &world{t: t, spends: map[string][]spend{}}
			var ids [2]headgate.PolicyID
			for i, p := range []headgate.Policy{d.was, d.is} {
				source, err := redis.Open(redis.Config{
					Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Clock: clock.theirs,
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(source.Close)
				w.stores = append(w.stores, behind(t, source, prefetch.Config{Clock: clock.ours, MaxKeys: 7}))
				ids[i] = prepare(t, w.stores[i], p)
			}
			w.alternateBy(name, clock, ids)
			if w.stores[0].Stats().Spent+w.stores[1].Stats().Spent == 0 {
				t.Error("no unit came from a stash: the traffic shows nothing")
			}
			w.judgeVersions(d)
		})
	}
}

// alternateBy sends requests of the instances in turns, and moves their clock in between.
func (w *world) alternateBy(key string, clock *manual, ids [2]headgate.PolicyID) {
	w.t.Helper()
	r := rand.New(rand.NewPCG(5, 8))
	for range 30 {
		which, gap := r.IntN(2), 1+r.Int64N(8)
		for range 1 + r.IntN(40) {
			clock.advance(time.Duration(r.Int64N(gap*1000)) * time.Microsecond)
			d := make([]headgate.Decision, 1)
			if err := w.stores[which].Apply(w.t.Context(), []headgate.Op{{Key: key, Policy: ids[which], Cost: 1}}, d); err != nil {
				w.t.Fatal(err)
			}
			if d[0].Verdict == headgate.Allow {
				w.spends["k"] = append(w.spends["k"], spend{d[0].At, clock.theirs(), 1})
			}
		}
	}
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
		sum += s.cost
	}
	for _, s := range w.stores {
		st := s.Stats()
		sum += int64(st.Granted - st.Spent)
	}
	return sum
}

// judgeVersions compares every interval with the bound of both versions, by the decisions'
// times and by true times.
func (w *world) judgeVersions(d deploy) {
	w.t.Helper()
	for _, when := range []func(spend) headgate.Instant{
		func(s spend) headgate.Instant { return s.at },
		func(s spend) headgate.Instant { return s.truly },
	} {
		all := slices.Clone(w.spends["k"])
		slices.SortStableFunc(all, func(a, b spend) int { return cmp.Compare(when(a), when(b)) })
		for i := range all {
			from, sum := when(all[i]).Add(-d.early()), int64(0)
			for _, s := range all[i:] {
				sum += s.cost
				to := when(s)
				if most := max(admits(d.was, from, to), admits(d.is, from, to)) + d.constant(); sum > most {
					w.t.Fatalf("%d have passed in %v, more than %d", sum, to.Sub(when(all[i])), most)
				}
			}
		}
		if len(all) < 100 {
			w.t.Errorf("only %d have passed", len(all))
		}
	}
}
