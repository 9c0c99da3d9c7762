package fairshare

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestNewcomers checks the first cycle of a newcomer beside four known clients. They have 10
// of 40 units each without the newcomer, and 8 with it. The newcomer gets at once the
// smaller of its default share and the units left, as if it had been there from the start.
func TestNewcomers(t *testing.T) {
	known := func(at time.Duration, requests, passes int) (story []line) {
		for _, name := range []string{"A", "B", "C", "D"} {
			story = append(story, line{says: "known client " + name, at: at, client: name, requests: requests, passes: passes})
		}
		return story
	}
	full := []line{
		{says: "the full share in the next cycle", at: cycles(1), client: "new", requests: 8, passes: 8},
		{says: "all clients have the full share", at: cycles(1), sizes: "A=8 B=8 C=8 D=8 new=8"},
	}
	for _, c := range []struct {
		says string
		busy [2]int // requests of each known client at the start, and how many of them pass
		at   float64
		gets map[Reclaim]int
		next bool // the known clients use all they have, so the next cycle has default shares
	}{
		{"at the start, others idle: the default share", [2]int{}, 0, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"in the middle, others idle: the default share", [2]int{}, 0.5, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"at the end, others idle: the default share", [2]int{}, 0.999, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"in the middle, half used: the units above the new default shares", [2]int{5, 5}, 0.5, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"at the end, half used: the default share", [2]int{5, 5}, 0.999, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"at the start, all used: 0 units", [2]int{10, 10}, 0, map[Reclaim]int{AtOnce: 0, NextCycle: 0}, true},
		{"at the end, all used: 0 units", [2]int{10, 10}, 0.999, map[Reclaim]int{AtOnce: 0, NextCycle: 0}, true},
		{"at the end, 4 units left: at most 4 units", [2]int{9, 9}, 0.999, map[Reclaim]int{AtOnce: 4, NextCycle: 4}, false},
	} {
		for reclaim, gets := range c.gets {
			t.Run(c.says+"/"+reclaim.String(), func(t *testing.T) {
				l := storyOf(t, plain(func(c *Config) { c.Weights, c.Reclaim = pinned("A B C D"), reclaim }))
				var story []line
				if c.busy[0] > 0 {
					story = known(0, c.busy[0], c.busy[1])
				}
				story = append(story, line{says: "the newcomer", at: cycles(c.at), client: "new", requests: 8, passes: gets})
				if c.next {
					story = append(story, full...)
				} else {
					story = append(story, full[:1]...)
				}
				tell(t, l, story)
			})
		}
	}
}

// twoNew returns the lines of a test table. Two new names arrive at the start of each given
// cycle, followed by others that exceed NewClientsPerCycle. The given last line ends
// the table.
func twoNew(at []float64, last line, others ...string) (story []line) {
	for i, cycle := range at {
		for j := range 2 {
			story = append(story, line{says: "new", at: cycles(cycle), client: fmt.Sprintf("n%d-%d", i, j), cost: 41})
		}
		for _, name := range others {
			story = append(story, line{says: "after the new names", at: cycles(cycle), client: name, cost: 41})
		}
	}
	return append(story, last)
}

// TestRegistry checks clients that join, stay and are forgotten, under both reclaims.
func TestRegistry(t *testing.T) {
	few := func(c *Config) { c.NewClientsPerCycle = 2 }
	for _, c := range []struct {
		says   string
		config func(*Config)
		story  []line
	}{
		{"a client is forgotten after three idle cycles, and its reservation is released", func(c *Config) { c.ForgetAfter = 3 }, []line{
			{says: "A comes", client: "A", passes: 1},
			{says: "B comes", client: "B", passes: 1},
			{says: "both clients keep unused units", at: cycles(1), sizes: "A=20 B=20"},
			{says: "B requests more, and A is idle", at: cycles(1), client: "B", cost: 41},
			{says: "A keeps its reservation", at: cycles(2), sizes: "A=2 B=38"},
			{says: "one idle cycle", at: cycles(2), client: "B", cost: 41},
			{says: "two", at: cycles(3), sizes: "A=2 B=38"},
			{says: "two", at: cycles(3), client: "B", cost: 41},
			{says: "after three idle cycles A is forgotten", at: cycles(4), sizes: "B=40"},
			{says: "A can join again", at: cycles(4), client: "A", passes: 1},
		}},
		{"all clients are forgotten without requests", func(c *Config) { c.ForgetAfter = 3 }, []line{
			{says: "A comes", client: "A", passes: 1},
			{says: "B comes", client: "B", passes: 1},
			{says: "three idle cycles later all are forgotten", at: cycles(4), sizes: ""},
			{says: "the next client is the first", at: cycles(4), client: "C", requests: 50, passes: 40},
		}},
		{"a pinned client is not forgotten", func(c *Config) { c.ForgetAfter, c.Weights = 1, pinned("P") }, []line{
			{says: "long after", at: cycles(1000), sizes: "P=40"},
		}},
		{"two names per cycle get shares of their own, the others share one", few, []line{
			{says: "one", client: "A", passes: 1},
			{says: "two", client: "B", passes: 1},
			{says: "the third", client: "C", requests: 7, passes: 7},
			{says: "the fourth name is in Others", client: "D", requests: 50, passes: 6},
			{says: "Others has a default share", sizes: "A=14 B=13 others=13"},
			{says: "in the next cycle two more names join", at: cycles(1), client: "E", requests: 1, passes: 1},
		}},
		{"Others gets what no other client requests", few, []line{
			{says: "one", client: "A", passes: 1},
			{says: "two", client: "B", passes: 1},
			{says: "Others has a large demand", client: "C", requests: 1000, passes: 13},
			{says: "A and B keep only their reservations", at: cycles(1), sizes: "A=2 B=1 others=37"},
		}},
		{"a name in Others in three cycles gets a share of its own", few, twoNew([]float64{0, 1, 2}, line{says: "late is known", at: cycles(2.5), sizes: "late"}, "late")},
		{"a name in Others in three cycles with pauses gets a share too", few, twoNew([]float64{0, 2, 4}, line{says: "late is known", at: cycles(4.5), sizes: "late"}, "late")},
		{"a name in Others in two cycles gets no share", few, twoNew([]float64{0, 1}, line{says: "late is not known", at: cycles(1.5), sizes: "!late"}, "late")},
		{"several requests in one cycle count once", few, twoNew([]float64{0}, line{says: "late is not known", at: cycles(0.5), sizes: "!late"}, "late", "late", "late", "late")},
		{"at most MaxClients clients", func(c *Config) { c.MaxClients, c.NewClientsPerCycle = 2, 2 }, []line{
			{says: "one", client: "A", passes: 1},
			{says: "two", client: "B", passes: 1},
			{says: "no more", client: "C", passes: 1},
			{says: "C is in Others", sizes: "A=14 B=13 others=13"},
			{says: "again", at: cycles(1), client: "C", passes: 1},
			{says: "again", at: cycles(2), client: "C", passes: 1},
			{says: "again", at: cycles(3), client: "C", passes: 1},
			{says: "C stays in Others", at: cycles(3), sizes: "!C"},
		}},
		{"a client with the name others is in Others", few, []line{
			{says: "a request of others", client: "others", passes: 1},
			{says: "one", client: "A", passes: 1},
			{says: "two", client: "B", passes: 1},
			{says: "the name others uses no slot of a client", sizes: "A=14 B=13 others=13"},
			{says: "the name others shares the cell of Others", client: "C", requests: 50, passes: 12},
			{says: "others", client: "others"},
		}},
	} {
		for _, reclaim := range Reclaims() {
			t.Run(c.says+"/"+reclaim.String(), func(t *testing.T) {
				config := plain(c.config)
				config.Reclaim = reclaim
				tell(t, storyOf(t, config), c.story)
			})
		}
	}
}

// TestOthersUseWhatIsOpen checks that Others also gets open units under AtOnce.
func TestOthersUseWhatIsOpen(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.NewClientsPerCycle, c.Weights = 0, pinned("A B C D") }))
	at := storyStart.Add(cycles(0.9))
	l.Take(at, Request{Client: "A"}) // A release is due: the entitlement is 4, and the rest is open.
	d, _ := l.Take(at, Request{Client: "X", Cost: 30})
	if d.Verdict != headgate.Allow {
		t.Errorf("Others is refused units that no other client requests: %+v", d)
	}
}

// TestMaxClientsHoldsAfterReload checks that clients pinned by a Reload count towards
// MaxClients.
func TestMaxClientsHoldsAfterReload(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.MaxClients = 3 }))
	for _, name := range []string{"A", "B", "C"} {
		l.Take(storyStart, Request{Client: name})
	}
	config := plain(func(c *Config) { c.MaxClients, c.Weights = 3, pinned("P Q R") })
	for i := range 3 {
		now := storyStart.Add(cycles(float64(i)))
		if err := l.Reload(now, config); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"A", "B", "C", "P", "Q", "R"} {
			l.Take(now, Request{Client: name})
		}
		if s := l.Shares(now); len(s.Clients) > 4 {
			t.Fatalf("cycle %d: the clients %s have shares, want at most 3 clients and Others", i, sizesOf(s))
		}
	}
}

// TestSizesHoldBesideNewcomer checks that under NextCycle all clients can use exactly the
// sizes that Shares and Decisions report, after a newcomer has joined.
func TestSizesHoldBesideNewcomer(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.Weights, c.Reclaim = pinned("A B C D"), NextCycle }))
	noNewcomers(l)
	tell(t, l, []line{
		{says: "A has a large demand, the others a small one", client: "A", requests: 100, passes: 10},
		{says: "B", client: "B", requests: 2, passes: 2},
		{says: "C", client: "C", requests: 3, passes: 3},
	})
	now := storyStart.Add(cycles(1))
	if d, _ := l.Take(now, Request{Client: "new"}); d.Verdict != headgate.Allow || d.Limit != 8 || d.Remaining != 7 {
		t.Errorf("the newcomer gets %+v, want it to be admitted", d)
	}
	for _, c := range l.Shares(now).Clients {
		admitted, remaining := c.Admitted, c.Size-c.Admitted
		for range 100 {
			d, _ := l.Take(now, Request{Client: c.Client})
			if d.Verdict == headgate.Allow {
				admitted++
			}
			if remaining = max(0, remaining-1); d.Remaining != remaining || d.Limit != c.Size {
				t.Fatalf("%s gets %+v, want %d of %d units remaining", c.Client, d, remaining, c.Size)
			}
		}
		if admitted != c.Size {
			t.Errorf("the size of %s is %d, but %d units are admitted", c.Client, c.Size, admitted)
		}
	}
}
