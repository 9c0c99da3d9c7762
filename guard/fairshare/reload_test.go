package fairshare

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// change is one line of a test table: a reload, or a request.
type change struct {
	at     time.Duration
	reload func(*Config)
	line   line
}

// TestReloads checks settings that change during a cycle, under both reclaims.
func TestReloads(t *testing.T) {
	capacity := func(n int64) func(*Config) { return func(c *Config) { c.Capacity = n } }
	length := func(d time.Duration) func(*Config) { return func(c *Config) { c.Cycle = d } }
	for _, c := range []struct {
		says  string
		story []change
	}{
		{"capacity raised", []change{
			{line: line{says: "its share", client: "A", requests: 50, passes: 20}},
			{at: cycles(0.1), reload: capacity(80)},
			{at: cycles(0.1), line: line{says: "a higher capacity applies at once, and used units stay used", sizes: "A=40 B=40"}},
			{at: cycles(0.1), line: line{says: "the rest of the new share", client: "A", requests: 50, passes: 20}},
			{at: cycles(0.1), line: line{says: "B's", client: "B", requests: 36, passes: 36}},
		}},
		{"capacity lowered below what is used", []change{
			{line: line{says: "its share", client: "A", requests: 50, passes: 20}},
			{at: cycles(0.1), reload: capacity(10)},
			{at: cycles(0.1), line: line{says: "no units for A", client: "A"}},
			{at: cycles(0.1), line: line{says: "no units for B", client: "B"}},
			{at: cycles(0.99), line: line{says: "to the end of the cycle", client: "B"}},
			{at: cycles(1), line: line{says: "then units are available again", client: "B", requests: 2, passes: 2}},
		}},
		{"capacity lowered, and units are left", []change{
			{line: line{says: "some", client: "A", requests: 10, passes: 10}},
			{at: cycles(0.1), reload: capacity(20)},
			{at: cycles(0.1), line: line{says: "A has used its share", client: "A"}},
			{at: cycles(0.1), line: line{says: "B has its own share", client: "B", requests: 9, passes: 9}},
		}},
		{"capacity lowered to 0 and raised again", []change{
			{line: line{says: "some", client: "A", requests: 10, passes: 10}},
			{at: cycles(0), reload: capacity(0)},
			{at: cycles(0), line: line{says: "nothing", client: "A"}},
			{at: cycles(0), reload: capacity(40)},
			{at: cycles(0), line: line{says: "the units that were left", client: "A", requests: 50, passes: 10}},
		}},
		{"the same settings, repeatedly", []change{
			{line: line{says: "some", client: "A", requests: 5, passes: 5}},
			{reload: capacity(40)},
			{reload: capacity(40)},
			{line: line{says: "the rest of its share", client: "A", requests: 50, passes: 15}},
			{reload: capacity(40)},
			{line: line{says: "nothing", client: "A"}},
		}},
		{"a shorter cycle", []change{
			{line: line{says: "some", client: "A", requests: 5, passes: 5}},
			{reload: length(time.Second)},
			{line: line{says: "used units stay used", client: "A", requests: 50, passes: 15}},
			{at: time.Second, line: line{says: "a second later the next cycle starts", client: "B", requests: 2, passes: 2}},
		}},
		{"weights", []change{
			{line: line{says: "its share", client: "A", requests: 50, passes: 20}},
			{reload: func(c *Config) { c.Weights = map[string]int64{"A": 3, "B": 1} }},
			{line: line{says: "a larger part", client: "A", requests: 50, passes: 10}},
			{line: line{says: "part of B's share", client: "B", requests: 50, passes: 10}},
			{line: line{says: "the weight applies now", sizes: "A=30 B=10"}},
		}},
		{"a client that is no longer pinned is forgotten", []change{
			{reload: func(c *Config) { c.Weights, c.ForgetAfter = pinned("B"), 2 }},
			{at: cycles(2), line: line{says: "", sizes: "B=40"}},
		}},
	} {
		for _, reclaim := range Reclaims() {
			t.Run(c.says+"/"+reclaim.String(), func(t *testing.T) {
				config := plain(func(c *Config) { c.Weights, c.Reclaim = pinned("A B"), reclaim })
				l := storyOf(t, config)
				noNewcomers(l)
				for _, e := range c.story {
					if e.reload != nil {
						e.reload(&config)
						if err := l.Reload(storyStart.Add(e.at), config); err != nil {
							t.Fatal(err)
						}
						continue
					}
					e.line.at = e.at
					tell(t, l, []line{e.line})
				}
			})
		}
	}
}

// TestLongerCycleReloadedTwice checks that a second Reload does not add units to a cycle that
// became longer. The usage before the start of the longer cycle is unknown.
func TestLongerCycleReloadedTwice(t *testing.T) {
	config := plain(func(c *Config) { c.Weights = pinned("A B") })
	l := storyOf(t, config)
	const late = 99*storyCycle + storyCycle/2
	now := (storyStart - storyStart%(100*headgate.Instant(storyCycle))).Add(late)
	l.Take(now, Request{Client: "A", Cost: 20})
	config.Cycle = 100 * storyCycle
	for range 2 {
		if err := l.Reload(now, config); err != nil {
			t.Fatal(err)
		}
		if b, _ := ledgerOf(l); b.sum()-b.used > 1 {
			t.Errorf("%d units are left in the last 0.5 %% of a cycle of 40 units, want 0", b.sum()-b.used)
		}
	}
}

// TestReclaimSwitched checks a Reload that changes Reclaim: loans return at the start of the
// next cycle.
func TestReclaimSwitched(t *testing.T) {
	config := plain(func(c *Config) { c.Weights = pinned("A B") })
	l := storyOf(t, config)
	noNewcomers(l)
	tell(t, l, []line{
		{says: "A floods, and borrows as the cycle passes", client: "A", requests: 100, passes: 20},
		{says: "half of B's share", at: cycles(0.5), client: "A", requests: 100, passes: 10},
	})
	config.Reclaim = NextCycle
	if err := l.Reload(storyStart.Add(cycles(0.5)), config); err != nil {
		t.Fatal(err)
	}
	tell(t, l, []line{
		{says: "B gets the units that are left", at: cycles(0.5), client: "B", requests: 100, passes: 10},
		{says: "A requested more and B less", at: cycles(1), sizes: "A=20 B=20"},
		{says: "A", at: cycles(1), client: "A", requests: 100, passes: 20},
		{says: "B is idle now", at: cycles(1.9), client: "A"},
		{says: "A gets what B does not request", at: cycles(2), sizes: "A=38 B=2"},
		{says: "at the start of the cycle", at: cycles(2), client: "A", requests: 100, passes: 38},
		{says: "B keeps only its reservation", at: cycles(2), client: "B", requests: 100, passes: 2},
	})
}
