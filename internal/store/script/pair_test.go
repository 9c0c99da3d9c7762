package script_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// late: a store that counts in microseconds rounds up to the next one.
func late(got, want time.Duration) bool { return got < want || got-want >= time.Microsecond }

// pair is two stores that are asked the same: memory, and Redis.
type pair struct {
	t      *testing.T
	r      *rand.Rand
	clock  *storetest.Clock
	stores [2]headgate.Store
	ids    [2][]headgate.PolicyID
	all    []headgate.Policy
	// taken is what may be returned, by window.
	taken  map[uint8][][2]headgate.Receipt
	passed int
}

func newPair(t *testing.T, s func(clock *storetest.Clock) headgate.Store, policies []headgate.Policy, seed uint64) *pair {
	t.Helper()
	p := &pair{t: t, r: rand.New(rand.NewPCG(seed, 11)), clock: storetest.NewClock(), all: policies, taken: map[uint8][][2]headgate.Receipt{}}
	// The race detector has tables on the heap, where 64 MiB a pair cost more time than its requests.
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

// ask is one op of a group: the number of its policy, its window, what it asks.
type ask struct {
	policy int
	window uint8
	cost   int64
	mode   headgate.OpKind
}

// group decides a group on both stores, compares, and reports whether it took something.
func (p *pair) group(step int, asks ...ask) bool {
	p.t.Helper()
	var ds [2][]headgate.Decision
	for i, store := range p.stores {
		ops := make([]headgate.Op, len(asks))
		for j, a := range asks {
			ops[j] = headgate.Op{Key: "k", Policy: p.ids[i][a.policy], Window: a.window, Cost: a.cost, Kind: a.mode}
		}
		ds[i] = apply(p.t, store, ops...)
	}
	took := false
	for j, a := range asks {
		took = p.compare(step, a, ds[0][j], ds[1][j]) || took
	}
	return took
}

func (p *pair) compare(step int, a ask, local, shared headgate.Decision) bool {
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
		p.t.Fatalf("step %d, %+v of %s %s:\nmemory %+v\nredis  %+v", step, a, policy.Algorithm, policy.Limit, local, shared)
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

// giveBack returns a take to both stores. A bucket in memory counts what comes too
// late among the units returned, which costs later receipts a little; on Redis it
// is passed over, so such receipts are no case for a comparison.
func (p *pair) giveBack(policy headgate.Policy, window uint8) {
	p.t.Helper()
	taken := p.taken[window]
	if len(taken) == 0 {
		return
	}
	receipts := taken[len(taken)-1-p.r.IntN(min(len(taken), 20))]
	if policy.Algorithm == headgate.TokenBucket {
		ends := receipts[0].From.Add(time.Duration(receipts[0].Cost) * policy.Limit.Per / time.Duration(policy.Limit.Count))
		if ends <= p.clock.Now() {
			return
		}
	}
	for i, s := range p.stores {
		if err := s.Return(p.t.Context(), receipts[i:i+1]); err != nil {
			p.t.Fatal(err)
		}
	}
}

// everyPolicy gives ordinary limits of each algorithm.
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

// mode is one that the policy has.
func (p *pair) mode(policy headgate.Policy) headgate.OpKind {
	m := headgate.OpKind(p.r.IntN(6))
	if m > headgate.Book || m == headgate.Book && policy.Algorithm > headgate.LeakyBucket {
		return headgate.Take
	}
	return m
}

// move lets some time pass, or the clock step back. What a refusal or a look has tidied
// is kept by memory alone, so the clock steps back only after a take.
func (p *pair) move(took, steps bool) {
	switch {
	case took && steps && p.r.IntN(8) == 0:
		p.clock.Advance(-time.Duration(p.r.Int64N(1<<(10+p.r.IntN(26)))) * time.Microsecond)
		p.group(-1, ask{}) // A look would tidy memory's state, and not that of Redis.
	case p.r.IntN(2) == 0:
		p.clock.Advance(time.Duration(p.r.IntN(400_000)) * time.Microsecond)
	}
}

// TestSameAsMemory plays takes, bookings, looks and returns on both stores, each
// algorithm alone: the scripts keep what limit's steps keep.
func TestSameAsMemory(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	for i, policy := range everyPolicy() {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%d %s %s %d", i, policy.Algorithm, policy.Limit, seed), func(t *testing.T) {
				flush(t, client)
				p := newPair(t, func(c *storetest.Clock) headgate.Store { return newStore(t, client, 16, c.Now) }, []headgate.Policy{policy}, seed)
				took := false
				for step := range 300 {
					p.move(took, seed%2 == 1)
					if p.r.IntN(3) == 0 {
						p.giveBack(policy, 0)
						took = false
						continue
					}
					took = p.group(step, ask{0, 0, p.r.Int64N(4), p.mode(policy)})
				}
				if p.passed == 0 && policy.Limit.Count > 0 {
					t.Error("nothing passed: the traffic shows nothing")
				}
			})
		}
	}
}

// TestGroupsAsMemory plays groups of several windows of any algorithms, with returns.
func TestGroupsAsMemory(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			flush(t, client)
			p := newPair(t, func(c *storetest.Clock) headgate.Store { return newStore(t, client, 1, c.Now) }, everyPolicy(), seed)
			windows := make([]int, 1+p.r.IntN(4)) // Each window has its policy.
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
					p.giveBack(p.all[windows[w]], uint8(w))
					continue
				}
				var asks []ask
				cost := []int64{1, 1, 1, 2, 0, 7}[p.r.IntN(6)]
				for w, policy := range windows {
					asks = append(asks, ask{policy, uint8(w), cost, p.mode(p.all[policy])})
				}
				p.group(step, asks...)
			}
		})
	}
}

// changes are limits that follow each other on one key, by algorithm.
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

// TestChangesAsMemory: a limit that changes in flight keeps what memory keeps. The last
// of the sets goes from algorithm to algorithm.
func TestChangesAsMemory(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	sets := append(changes(), everyPolicy())
	for i, set := range sets {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("%s %d %d", set[0].Algorithm, i, seed), func(t *testing.T) {
				flush(t, client)
				p := newPair(t, func(c *storetest.Clock) headgate.Store { return newStore(t, client, 0, c.Now) }, set, seed)
				current := 0
				for step := range 300 {
					p.move(false, false)
					// A look tidies a log in memory, and nothing here.
					mode := headgate.Take
					if p.r.IntN(6) == 0 {
						current = p.r.IntN(len(set))
					} else if a := set[current].Algorithm; a != headgate.SlidingLog && a != headgate.SlidingWindow {
						mode = p.mode(set[current])
					}
					p.group(step, ask{current, 0, p.r.Int64N(6), mode})
				}
			})
		}
	}
}

// TestLongLogsAsMemory: logs that are longer than their state, with their lists.
func TestLongLogsAsMemory(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	set := []headgate.Policy{
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 3000, Per: 100 * time.Second}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 800, Per: 100 * time.Second}, CountRejected: true},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: 100 * time.Second}},
		{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 2000, Per: 30 * time.Second}},
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			flush(t, client)
			p := newPair(t, func(c *storetest.Clock) headgate.Store { return newStore(t, client, 0, c.Now) }, set, seed)
			current, took := 0, false
			for step := range 2500 {
				switch n := p.r.IntN(1000); {
				case n < 3 && seed%2 == 0:
					current = p.r.IntN(len(set))
					p.taken = map[uint8][][2]headgate.Receipt{} // Memory voids them.
				case n < 6:
					p.clock.Advance(time.Duration(p.r.IntN(60)) * time.Second)
				case n < 9 && took:
					p.clock.Advance(-time.Duration(p.r.IntN(200)) * time.Second)
					p.group(step, ask{policy: current})
				case n < 100:
					p.giveBack(set[current], 0)
					took = false
					continue
				case n < 600:
					p.clock.Advance(time.Duration(p.r.IntN(20)) * time.Millisecond)
				}
				took = p.group(step, ask{current, 0, 1 + p.r.Int64N(1+p.r.Int64N(5)), headgate.Take})
				if p.r.IntN(50) == 0 {
					p.group(step, ask{current, 0, p.r.Int64N(3001), headgate.Peek})
				}
			}
		})
	}
}
