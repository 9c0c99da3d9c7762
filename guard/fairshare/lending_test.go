package fairshare

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/share"
)

// TestSizesAboveDefault sends requests whose cost is between the client's default share and
// its size, while another client floods. They pass under NextCycle. Under AtOnce no client is
// entitled to that many units at once, so they pass only with unused units.
func TestSizesAboveDefault(t *testing.T) {
	for _, c := range []struct {
		reclaim     Reclaim
		flood       int // attempts in each hundredth of a cycle
		least, most int
	}{{NextCycle, 10, 8, 10}, {AtOnce, 10, 0, 0}, {AtOnce, 0, 10, 10}} {
		l := storyOf(t, plain(func(config *Config) {
			config.Reclaim, config.Division, config.Weights = c.reclaim, share.MaxMin, pinned("big flood idle1 idle2")
		}))
		served := 0
		const rounds = 10
		for i := range rounds * 100 {
			now := storyStart.Add(storyCycle * time.Duration(i) / 100)
			for range c.flood {
				l.Take(now, Request{Client: "flood"})
			}
			if i%100 == 50 {
				if d, _ := l.Take(now, Request{Client: "big", Cost: 12}); d.Verdict == headgate.Allow {
					served++
				}
			}
		}
		if served < c.least || served > c.most {
			t.Errorf("%v beside a flood of %d: %d requests with cost 12, one per cycle: %d are served, want %d to %d",
				c.reclaim, 100*c.flood, rounds, served, c.least, c.most)
		}
	}
}

// TestPoolsTogether checks that an owner can combine units of several pools: 4 of its own,
// 3 of spare and 3 of open serve a cost of 10.
func TestPoolsTogether(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.Weights = pinned("A B C D") }))
	stage := l.current.Load().pools
	lower := func(name string, n int64) int64 {
		x := l.current.Load().cells[name]
		return x.lower(x.left.Load() - n)
	}
	lower("A", 6)
	stage.spare.put(3)
	stage.open.put(3)
	if d, _ := l.Take(storyStart, Request{Client: "A", Cost: 10}); d.Verdict == headgate.Deny {
		b, _ := ledgerOf(l)
		t.Errorf("A is refused within its default share although spare and open have units: %+v", b)
	}
}

// TestReserveIsForOwners checks that only owners draw on the reserve, up to their default
// shares. Newcomers and borrowers do not.
func TestReserveIsForOwners(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.Weights = pinned("A B C D") }))
	late := cycles(1) - 1 // All entitlements are 0.
	tell(t, l, []line{
		{says: "B uses its default share", client: "B", requests: 10, passes: 10},
		{says: "a newcomer takes half of its default share", at: late, client: "new", requests: 4, passes: 4},
	})
	stage, x := l.current.Load().pools, l.current.Load().find("new")
	stage.open.put(x.lower(0))
	stage.reserve.put(stage.open.takeUpTo(40))
	tell(t, l, []line{
		{says: "the newcomer requests more, but cannot use the reserve", at: late, client: "new"},
		{says: "B has used its default share", at: late, client: "B"},
		{says: "A has not used its default share", at: late, client: "A", requests: 40, passes: 8},
	})
}

// TestNothingStaysIdle checks the second bound of the package comment. While any client has
// unmet demand, only the reserve and the entitlements of the last release are unused at
// the end of a cycle. Here 49 borrowers within their sizes have stopped, and a flood continues.
func TestNothingStaysIdle(t *testing.T) {
	const clients, borrowers, capacity = 100, 49, 1000
	weights := map[string]int64{"flood": 1}
	for i := range clients - 1 {
		weights[fmt.Sprintf("client-%02d", i)] = 1
	}
	l := storyOf(t, plain(func(c *Config) { c.Capacity, c.Division, c.Weights = capacity, share.MaxMin, weights }))
	quick := time.Duration(0)
	for cycle := range 3 {
		for tick := range 2000 {
			now := storyStart.Add(storyCycle*time.Duration(cycle) + storyCycle*time.Duration(tick)/2000)
			for i := range borrowers {
				if tick%10 == 0 && (tick < 150 && cycle < 2 || tick < 120) { // 15 requests per share of 10, and 12 in the last cycles.
					l.Take(now, Request{Client: fmt.Sprintf("client-%02d", i)})
				}
			}
			if cycle == 2 && tick >= 1000 || tick%10 == 0 {
				for range 20 {
					l.Take(now, Request{Client: "flood"})
				}
			}
			quick = l.current.Load().quick
		}
	}
	b, fault := ledgerOf(l)
	bound := b.reserve + int64(capacity*quick/storyCycle) + 1
	if unused := capacity - b.used; unused > bound || fault != "" {
		t.Errorf("%d of %d units are unused while the flood is refused, want at most %d: %+v %s", unused, capacity, bound, b, fault)
	}
}
