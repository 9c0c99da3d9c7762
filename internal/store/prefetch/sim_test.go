package prefetch_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit/twin"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/versions"
)

// world is a shared store and several instances in front of it, in virtual time.
type world struct {
	t      *testing.T
	r      *rand.Rand
	mu     sync.Mutex // mu guards r and spends.
	start  time.Time
	source *source
	stores []*prefetch.Store
	spends map[string][]versions.Spend
	asked  int
}

// newWorld makes instances with clocks of random offsets. The clocks run at rates within drift
// of the source's clock. Each way over the network takes up to delay.
func newWorld(t *testing.T, seed uint64, instances int, drift float64, delay time.Duration) *world {
	t.Helper()
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 4)), start: time.Now(), spends: map[string][]versions.Spend{}}
	w.source = newSource(t, w.clock)
	w.source.way = func(ctx context.Context) error {
		// Not time.After: with the race detector, Go 1.26.8 has crashed in a select on the channel of a timer of a bubble.
		arrived := make(chan struct{})
		timer := time.AfterFunc(w.upTo(delay), func() { close(arrived) })
		defer timer.Stop()
		select {
		case <-arrived:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for range instances {
		rate, off := 1+drift*(2*w.r.Float64()-1), time.Duration(w.r.Int64N(int64(time.Hour)))
		w.stores = append(w.stores, behind(t, w.source, prefetch.Config{Clock: func() time.Duration {
			return off + time.Duration(rate*float64(time.Since(w.start)))
		}}))
	}
	return w
}

// clock is the source's clock: whole microseconds, not aligned with any window.
func (w *world) clock() headgate.Instant {
	return epoch.Add(time.Since(w.start).Truncate(time.Microsecond) + 377*time.Millisecond)
}

func (w *world) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.r.Int64N(int64(d) + 1))
}

// ask makes one request of an instance and records the ops that pass. names are the states of
// the ops.
func (w *world) ask(s *prefetch.Store, names []string, ops []headgate.Op) []headgate.Decision {
	decisions := make([]headgate.Decision, len(ops))
	began := time.Now()
	if err := s.Apply(w.t.Context(), ops, decisions); err != nil {
		w.t.Errorf("Apply: %v", err)
		return decisions
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	denied := slices.ContainsFunc(decisions, func(d headgate.Decision) bool { return d.Verdict == headgate.Deny })
	for i, d := range decisions {
		if d.At != decisions[0].At {
			w.t.Errorf("ops of one group are decided at %v and %v", decisions[0].At, d.At)
		}
		if d.Remaining < 0 || d.Remaining > d.Limit {
			w.t.Errorf("%d of %d remain", d.Remaining, d.Limit)
		}
		if denied {
			if !d.Receipt.Empty() {
				w.t.Errorf("a refused group has the receipt %+v", d.Receipt)
			}
			continue
		}
		truly := w.clock()
		if time.Since(began) > 0 {
			truly = d.At // The request is late because of the network, not because of a stash.
		}
		w.spends[names[i]] = append(w.spends[names[i]], versions.Spend{At: d.At, Truly: truly, Cost: ops[i].Cost})
	}
	return decisions
}

// judge replays the requests that passed against a twin of the user's limit.
func (w *world) judge(name string, p headgate.Policy, truly bool) {
	w.t.Helper()
	p.Hold, p.Batch = 0, 0
	all := slices.Clone(w.spends[name])
	when := func(s versions.Spend) headgate.Instant {
		if truly {
			return s.Truly
		}
		return s.At
	}
	slices.SortStableFunc(all, func(a, b versions.Spend) int { return cmp.Compare(when(a), when(b)) })
	key := twin.New(p)
	for i, s := range all {
		if a := key.Do(when(s), s.Cost, headgate.Take); a.Verdict != headgate.Allow {
			w.t.Errorf("%s under %s %s, truly %v: spend %d of %d, %d at %v, is above the limit: %v",
				name, p.Algorithm, p.Limit, truly, i, len(all), s.Cost, when(s).Time(), a.Reason)
			return
		}
	}
	if len(all) < 10 {
		w.t.Errorf("%s: only %d have passed", name, len(all))
	}
}

// busy runs ask with random pauses for d.
func (w *world) busy(d time.Duration, ask func()) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		gap, n := w.upTo(12*time.Millisecond), 1+int(w.upTo(60))
		for range n {
			ask()
			rest(gap)
		}
		rest(w.upTo(400 * time.Millisecond))
	}
}

// heldPolicies are all algorithms that can be prefetched, with holds of noticeable length.
func heldPolicies(hold time.Duration, batch int64) []headgate.Policy {
	l := headgate.Limit{Count: 60, Per: time.Second}
	odd := headgate.Limit{Count: 61, Per: 700 * time.Millisecond}
	return []headgate.Policy{
		{Algorithm: headgate.SlidingLog, Limit: l, Hold: hold, Batch: batch},
		{Algorithm: headgate.FixedWindow, Limit: l, Hold: hold, Batch: batch},
		{Algorithm: headgate.SlidingWindow, SubWindows: 3, Limit: l, Hold: hold, Batch: batch},
		{Algorithm: headgate.SlidingWindow, SubWindows: 100, Limit: odd, Hold: hold, Batch: batch},
		{Limit: headgate.Limit{Count: 50, Per: time.Second, Burst: 40}, Hold: hold, Batch: batch},
		{Limit: odd, Hold: hold, Batch: batch},
	}
}

// TestNeverAboveTheLimit: delays, demand and clocks are random. All instances together keep to
// the limit, by the decisions' times. If the clocks' rates differ by at most a thousandth,
// they keep to it by true times too.
func TestNeverAboveTheLimit(t *testing.T) {
	totals := make([]prefetch.Stats, len(heldPolicies(0, 0))) // of each policy, because a single run may spend nothing
	for i, drift := range []float64{0.0005, 0.6} {
		for _, batch := range []int64{0, 7} {
			for seed := range seeds(3) {
				for n, p := range heldPolicies(150*time.Millisecond, batch) {
					name := fmt.Sprintf("drift %v batch %d seed %d %s %d", drift, batch, seed, p.Algorithm, n)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							st := neverAbove(t, seed, p, drift, i == 0)
							totals[n].Spent += st.Spent
							totals[n].Denied += st.Denied
						})
					})
				}
			}
		}
	}
	for n, st := range totals {
		if st.Spent == 0 || st.Denied == 0 {
			t.Errorf("policy %d: no unit is spent from a stash, or no request refused here: %+v", n, st)
		}
	}
}

// neverAbove runs one simulation. It returns what the instances spent and refused themselves.
func neverAbove(t *testing.T, seed uint64, p headgate.Policy, drift float64, truly bool) (st prefetch.Stats) {
	t.Helper()
	w := newWorld(t, seed, 5, drift, 30*time.Millisecond)
	var all sync.WaitGroup
	for _, s := range w.stores {
		id := prepare(t, s, p)
		for range 2 {
			all.Go(func() {
				w.busy(4*time.Second, func() {
					w.ask(s, []string{"k"}, []headgate.Op{{Key: "k", Policy: id, Cost: 1 + int64(w.upTo(2))}})
				})
			})
		}
	}
	all.Wait()
	w.judge("k", p, false)
	if truly {
		w.judge("k", p, true)
	}
	for _, s := range w.stores {
		one := s.Stats()
		st.Spent += one.Spent
		st.Flights += one.Flights
		st.Denied += one.Denied
	}
	t.Logf("%d asked, %d calls of the source, %+v", w.asked, w.source.calls.Load(), st)
	return st
}

// TestGroupsNeverAboveTheLimit: groups have two windows of one key, or a key shared by all and
// a key of some. No limit is exceeded. An op that passes has passed with its whole group.
func TestGroupsNeverAboveTheLimit(t *testing.T) {
	hold := 120 * time.Millisecond
	short := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 30, Per: 300 * time.Millisecond}, Hold: hold}
	long := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 80, Per: time.Second}, Hold: 2 * hold}
	shared := headgate.Policy{Limit: headgate.Limit{Count: 90, Per: time.Second}, Hold: hold}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed, 4, 0.0005, 25*time.Millisecond)
				var all sync.WaitGroup
				for _, s := range w.stores {
					a, b, c := prepare(t, s, short), prepare(t, s, long), prepare(t, s, shared)
					for i := range 3 {
						key := fmt.Sprint("key", i%2)
						ops := []headgate.Op{
							{Key: key, Policy: a, Cost: 1},
							{Key: key, Policy: b, Cost: 1, Window: 1},
							{Key: "all", Policy: c, Cost: 1},
						}
						all.Go(func() {
							w.busy(3*time.Second, func() { w.ask(s, []string{key + "a", key + "b", "all"}, ops) })
						})
					}
				}
				all.Wait()
				for _, truly := range []bool{false, true} {
					w.judge("key0a", short, truly)
					w.judge("key0b", long, truly)
					w.judge("all", shared, truly)
				}
				if n := len(w.spends["key0a"]) + len(w.spends["key1a"]); n != len(w.spends["all"]) {
					t.Errorf("%d passed under their keys, %d under the shared one", n, len(w.spends["all"]))
				}
			})
		})
	}
}

// TestHoldsAreWhatMakesBatchesSafe is the counterexample. Eight instances share a log of 100 a
// second and take batches of 10; the demand of each comes in bursts. Without a hold, an
// instance keeps its units until they are spent, and far more than 100 pass in a second.
// With a hold, that never happens.
func TestHoldsAreWhatMakesBatchesSafe(t *testing.T) {
	p := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: time.Second}}
	worst, held := 0, 0
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, 8, 0, time.Millisecond)
			id := prepare(t, w.source, p)
			have := make([]int64, len(w.stores))
			w.onOff(seed, func(i int) { w.hoard(id, &have[i]) })
			worst = max(worst, mostInASecond(w.spends["k"]))
		})
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, 8, 0, time.Millisecond)
			p := p
			p.Hold, p.Batch = 50*time.Millisecond, 10
			w.onOff(seed, func(i int) {
				w.ask(w.stores[i], []string{"k"}, []headgate.Op{{Key: "k", Policy: prepare(t, w.stores[i], p), Cost: 1}})
			})
			held = max(held, mostInASecond(w.spends["k"]))
		})
	}
	t.Logf("in one second, with a limit of 100, up to %d pass without a hold and %d with a hold", worst, held)
	if worst < 120 || held > 100 || held < 60 {
		t.Errorf("in one second, with a limit of 100, up to %d pass without a hold and %d with a hold", worst, held)
	}
}

// hoard is a naive prefetch: it takes up to ten units, and spends them at any time.
func (w *world) hoard(id headgate.PolicyID, have *int64) {
	if *have == 0 {
		d := make([]headgate.Decision, 1)
		op := []headgate.Op{{Key: "k", Policy: id, Cost: 10}}
		if err := w.source.Grant(w.t.Context(), op, []int64{1}, d); err != nil {
			w.t.Error(err)
		}
		*have = d[0].Receipt.Cost
	}
	if *have > 0 {
		*have--
		w.mu.Lock()
		w.spends["k"] = append(w.spends["k"], versions.Spend{At: w.clock(), Cost: 1})
		w.mu.Unlock()
	}
}

// onOff lets each instance make a few requests, pause for more than a second, and then make
// many requests together with the others.
func (w *world) onOff(seed uint64, ask func(i int)) {
	var all sync.WaitGroup
	for i := range w.stores {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for round := range 8 {
				rest(time.Until(w.start.Add(time.Duration(round) * 1500 * time.Millisecond)))
				rest(time.Duration(r.IntN(200)) * time.Millisecond)
				for range 1 + round%2*50 + r.IntN(5) {
					ask(i)
					rest(time.Duration(2+r.IntN(4)) * time.Millisecond)
				}
			}
		})
	}
	all.Wait()
}

// mostInASecond gives the largest sum over (t-1s, t].
func mostInASecond(spends []versions.Spend) int {
	slices.SortFunc(spends, func(a, b versions.Spend) int { return cmp.Compare(a.At, b.At) })
	most, from, sum := 0, 0, 0
	for _, s := range spends {
		sum += int(s.Cost)
		for spends[from].At <= s.At.Add(-time.Second) {
			sum -= int(spends[from].Cost)
			from++
		}
		most = max(most, sum)
	}
	return most
}
