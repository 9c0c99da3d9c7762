package script_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/testkit/race"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// late reports whether got is not want rounded up to the next microsecond.
func late(got, want time.Duration) bool { return got < want || got-want >= time.Microsecond }

// pair runs the same calls on a store in memory and a store on Redis.
type pair struct {
	t      *testing.T
	r      *rand.Rand
	clock  *storetest.Clock
	stores [2]headgate.Store
	ids    [2][]headgate.PolicyID
	all    []headgate.Policy
	// taken has the receipts that may be returned, by window.
	taken  map[uint8][][2]headgate.Receipt
	passed int
}

func newPair(t *testing.T, s func(clock *storetest.Clock) headgate.Store, policies []headgate.Policy, seed uint64) *pair {
	t.Helper()
	p := &pair{t: t, r: rand.New(rand.NewPCG(seed, 11)), clock: storetest.NewClock(), all: policies, taken: map[uint8][][2]headgate.Receipt{}}
	// With the race detector, the tables of the store are on the heap. Allocating 64 MiB for each pair
	// would take longer than the requests.
	local, err := memory.New(memory.Config{MaxMemory: 8 << 20, Clock: p.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	p.stores = [2]headgate.Store{local, s(p.clock)}
	for i, store := range p.stores {
		for _, policy := range policies {
			id, err := store.Prepare(policy)
			if err != nil {
				t.Fatal(err)
			}
			p.ids[i] = append(p.ids[i], id)
		}
	}
	return p
}

// request is one Op of a group. policy is an index into pair.all.
type request struct {
	policy int
	window uint8
	cost   int64
	kind   headgate.OpKind
}

// group decides a group on both stores, compares the decisions, and reports whether it took
// units.
func (p *pair) group(step int, requests ...request) bool {
	p.t.Helper()
	var ds [2][]headgate.Decision
	for i, store := range p.stores {
		ops := make([]headgate.Op, len(requests))
		for j, a := range requests {
			ops[j] = headgate.Op{Key: "k", Policy: p.ids[i][a.policy], Window: a.window, Cost: a.cost, Kind: a.kind}
		}
		ds[i] = apply(p.t, store, ops...)
	}
	taken := false
	for j, a := range requests {
		taken = p.compare(step, a, ds[0][j], ds[1][j]) || taken
	}
	return taken
}

func (p *pair) compare(step int, a request, local, shared headgate.Decision) bool {
	p.t.Helper()
	policy := p.all[a.policy]
	receipts := [2]headgate.Receipt{local.Receipt, shared.Receipt}
	wrong := local.Receipt.Empty() != shared.Receipt.Empty() || local.Receipt.Cost != shared.Receipt.Cost
	wrong = wrong || late(shared.RetryAfter, local.RetryAfter) || late(shared.ResetAfter, local.ResetAfter)
	got, want := shared, local
	for _, d := range []*headgate.Decision{&got, &want} {
		d.Receipt, d.RetryAfter, d.ResetAfter = headgate.Receipt{}, 0, 0
	}
	if wrong || got != want {
		p.t.Fatalf("step %d, request %+v with %s %s:\nmemory %+v\nredis  %+v", step, a, policy.Algorithm, policy.Limit, local, shared)
	}
	if local.Verdict != headgate.Deny {
		p.passed++
	}
	if receipts[0].Empty() || receipts[0].Cost == 0 {
		return false
	}
	p.taken[a.window] = append(p.taken[a.window], receipts)
	return true
}

// giveBack returns a take to both stores, early or late.
func (p *pair) giveBack(window uint8) {
	p.t.Helper()
	taken := p.taken[window]
	if len(taken) == 0 {
		return
	}
	receipts := taken[len(taken)-1-p.r.IntN(min(len(taken), 20))]
	for i, s := range p.stores {
		if err := s.Return(p.t.Context(), receipts[i:i+1]); err != nil {
			p.t.Fatal(err)
		}
	}
}

// everyPolicy gives typical policies of each algorithm.
func everyPolicy() []headgate.Policy {
	second := headgate.Limit{Count: 6, Per: time.Second}
	return []headgate.Policy{
		{Limit: headgate.Limit{Count: 10, Per: time.Second}, MaxWait: 300 * time.Millisecond},
		{Limit: headgate.Limit{Count: 7, Per: 3 * time.Second, Burst: 30}},
		{Limit: headgate.Limit{Count: 3, Per: time.Second}, MaxWait: time.Second},
		{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 10, Per: time.Second, Burst: 8}, MaxWait: 500 * time.Millisecond},
		{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 7, Per: time.Second}},
		{Algorithm: headgate.FixedWindow, Limit: second},
		{Algorithm: headgate.FixedWindow, Limit: second, CountRejected: true},
		{Algorithm: headgate.SlidingLog, Limit: second},
		{Algorithm: headgate.SlidingLog, Limit: second, CountRejected: true},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 700, Per: 40 * time.Second}},
		{Algorithm: headgate.SlidingWindow, Limit: second, SubWindows: 1},
		{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 20, Per: 4 * time.Second}, SubWindows: 5, CountRejected: true},
		{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 40, Per: 8 * time.Second}, SubWindows: 256},
		{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 40, Per: 2 * time.Second}, BanFor: 3 * time.Second},
		{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 0, Per: time.Second}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 0, Per: time.Second}},
	}
}

// kind gives a random Kind that the policy supports, for a group of several Ops.
func (p *pair) kind(policy headgate.Policy) headgate.OpKind {
	m := headgate.OpKind(p.r.IntN(6))
	if m > headgate.Book && m != headgate.TakeNow || m == headgate.Book && policy.Algorithm > headgate.LeakyBucket {
		return headgate.Take
	}
	return m
}

// kindAlone gives a random Kind that the policy supports, for a group of one Op.
func (p *pair) kindAlone(policy headgate.Policy) headgate.OpKind {
	m := headgate.OpKind(p.r.IntN(8))
	if !limit.Accepts(policy.Algorithm, m) {
		return headgate.Take
	}
	return m
}

// withCountAll adds a policy that counts every attempt. The golden file does not have it: its state
// is that of any fixed window.
func withCountAll(policies []headgate.Policy, limits ...headgate.Limit) []headgate.Policy {
	for _, l := range limits {
		policies = append(policies, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: l, CountRejected: true, CountAll: true})
	}
	return policies
}

// someCountAll gives limits for withCountAll.
func someCountAll() []headgate.Limit {
	return []headgate.Limit{{Count: 6, Per: time.Second}, {Count: 0, Per: time.Second}, {Count: 2, Per: 5 * time.Second}}
}

// move advances the clock or steps it back. It steps back only after a Take: a refusal or a Peek
// cleans up the state in memory, but not the state on Redis.
func (p *pair) move(taken, steps bool) {
	switch {
	case taken && steps && p.r.IntN(8) == 0:
		p.clock.Advance(-time.Duration(p.r.Int64N(1<<(10+p.r.IntN(26)))) * time.Microsecond)
		p.group(-1, request{}) // This request makes both stores notice the step.
	case p.r.IntN(2) == 0:
		p.clock.Advance(time.Duration(p.r.IntN(400_000)) * time.Microsecond)
	}
}

// TestSameAsMemory runs Takes, bookings, Peeks and Returns on both stores, with one policy at a time.
// All decisions are the same.
func TestSameAsMemory(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	for i, policy := range withCountAll(everyPolicy(), someCountAll()...) {
		for seed := range uint64(race.Fewer(6, 2)) {
			t.Run(fmt.Sprintf("%d %s %s %d", i, policy.Algorithm, policy.Limit, seed), func(t *testing.T) {
				flush(t, client)
				p := newPair(t, func(c *storetest.Clock) headgate.Store { return newStore(t, client, 16, c.Now) }, []headgate.Policy{policy}, seed)
				taken := false
				for step := range 300 {
					p.move(taken, seed%2 == 1)
					if p.r.IntN(3) == 0 {
						p.giveBack(0)
						taken = false
						continue
					}
					taken = p.group(step, request{0, 0, p.r.Int64N(4), p.kindAlone(policy)})
				}
				if p.passed == 0 && policy.Limit.Count > 0 {
					t.Error("no request passed, so the test checks nothing")
				}
			})
		}
	}
}

// TestGroupsAsMemory runs groups of several windows with different algorithms, and Returns.
func TestGroupsAsMemory(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	for seed := range uint64(race.Fewer(40, 8)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			flush(t, client)
			p := newPair(t, func(c *storetest.Clock) headgate.Store { return newStore(t, client, 1, c.Now) },
				withCountAll(everyPolicy(), someCountAll()...), seed)
			windows := make([]int, 1+p.r.IntN(4)) // Each window has its own policy.
			for w := range windows {
				windows[w] = p.r.IntN(len(p.all) - 2)
			}
			if p.r.IntN(8) == 0 {
				windows[0] = len(p.all) - 1 - p.r.IntN(2)
			}
			for step := range 250 {
				p.move(false, false)
				if p.r.IntN(4) == 0 {
					w := p.r.IntN(len(windows))
					p.giveBack(uint8(w))
					continue
				}
				var requests []request
				cost, all := []int64{1, 1, 1, 2, 0, 7}[p.r.IntN(6)], p.r.IntN(3) == 0
				for w, policy := range windows {
					kind := p.kind(p.all[policy])
					if all {
						kind = headgate.TakeIfAll
					}
					requests = append(requests, request{policy, uint8(w), cost, kind})
				}
				p.group(step, requests...)
			}
		})
	}
}

// changes gives sets of policies for successive limits of one key, one set for each algorithm.
func changes() [][]headgate.Policy {
	return [][]headgate.Policy{
		{
			{Limit: headgate.Limit{Count: 10, Per: time.Second}},
			{Limit: headgate.Limit{Count: 20, Per: time.Second}, MaxWait: time.Second},
			{Limit: headgate.Limit{Count: 10, Per: time.Second, Burst: 3}},
			{Limit: headgate.Limit{Count: 5, Per: time.Second, Burst: 40}},
			{Limit: headgate.Limit{Count: 0, Per: time.Second}},
		},
		{
			{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 10, Per: time.Second}},
			{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 100, Per: time.Second, Burst: 30}},
			{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 2, Per: time.Second, Burst: 5}},
		},
		{
			{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Second}},
			{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 30, Per: 5 * time.Second}},
			{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Per: time.Second}, CountRejected: true},
			{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 20, Per: time.Second}},
			{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 8, Per: time.Second}, CountRejected: true, CountAll: true},
			{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 0, Per: time.Second}, CountRejected: true, CountAll: true},
		},
		{
			{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 10, Per: time.Second}},
			{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 30, Per: 5 * time.Second}, CountRejected: true},
			{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 4, Per: 5 * time.Second}, CountRejected: true},
			{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 9, Per: 5 * time.Second}},
		},
		{
			{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 10, Per: time.Second}, SubWindows: 4},
			{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 30, Per: 5 * time.Second}, SubWindows: 50},
			{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 10, Per: time.Second}, SubWindows: 1, CountRejected: true},
			{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 20, Per: time.Second}, SubWindows: 4},
			{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 12, Per: time.Second}, SubWindows: 7},
			{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 9, Per: time.Second}, SubWindows: 3},
			{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: 30, Per: time.Second}, SubWindows: 256},
		},
		{
			{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 10, Per: time.Second}, BanFor: 2 * time.Second},
			{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 5, Per: 2 * time.Second}, BanFor: time.Second},
			{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 8, Per: 2 * time.Second}, BanFor: 100 * 24 * time.Hour},
			{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 30, Per: time.Second}, BanFor: 2 * time.Second},
		},
	}
}

// TestChangesAsMemory: after a changed limit, Redis has the same counts as memory. In the last set,
// changes also change the algorithm.
func TestChangesAsMemory(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	sets := append(changes(), everyPolicy())
	for i, set := range sets {
		for seed := range uint64(race.Fewer(10, 2)) {
			t.Run(fmt.Sprintf("%s %d %d", set[0].Algorithm, i, seed), func(t *testing.T) {
				flush(t, client)
				p := newPair(t, func(c *storetest.Clock) headgate.Store { return newStore(t, client, 0, c.Now) }, set, seed)
				current := 0
				for step := range 300 {
					p.move(false, false)
					// Logs and sliding windows get no Peek, which cleans up a state in memory, but not on Redis.
					kind := headgate.Take
					if p.r.IntN(6) == 0 {
						current = p.r.IntN(len(set))
					} else if a := set[current].Algorithm; a != headgate.SlidingLog && a != headgate.SlidingWindow {
						kind = p.kindAlone(set[current])
					} else if p.r.IntN(8) == 0 {
						kind = headgate.Refund
					}
					p.group(step, request{current, 0, p.r.Int64N(6), kind})
					if p.r.IntN(4) == 0 {
						p.giveBack(0)
					}
				}
			})
		}
	}
}

// TestLongLogsAsMemory compares long logs, which have lists on Redis.
func TestLongLogsAsMemory(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	set := []headgate.Policy{
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 3000, Per: 100 * time.Second}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 800, Per: 100 * time.Second}, CountRejected: true},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: 100 * time.Second}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 2000, Per: 30 * time.Second}},
	}
	for seed := range uint64(race.Fewer(6, 2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			flush(t, client)
			p := newPair(t, func(c *storetest.Clock) headgate.Store { return newStore(t, client, 0, c.Now) }, set, seed)
			current, taken := 0, false
			for step := range 2500 {
				switch n := p.r.IntN(1000); {
				case n < 3 && seed%2 == 0:
					current = p.r.IntN(len(set))
				case n < 6:
					p.clock.Advance(time.Duration(p.r.IntN(60)) * time.Second)
				case n < 9 && taken:
					p.clock.Advance(-time.Duration(p.r.IntN(200)) * time.Second)
					p.group(step, request{policy: current})
				case n < 100:
					p.giveBack(0)
					taken = false
					continue
				case n < 600:
					p.clock.Advance(time.Duration(p.r.IntN(20)) * time.Millisecond)
				}
				taken = p.group(step, request{current, 0, 1 + p.r.Int64N(1+p.r.Int64N(5)), headgate.Take})
				if p.r.IntN(50) == 0 {
					p.group(step, request{current, 0, p.r.Int64N(3001), headgate.Peek})
				}
				if p.r.IntN(60) == 0 {
					p.group(step, request{current, 0, p.r.Int64N(1 + p.r.Int64N(1000)), headgate.Refund})
				}
			}
		})
	}
}
