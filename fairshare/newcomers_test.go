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
	known := func(at time.Duration, asks, passes int) (story []line) {
		for _, name := range []string{"A", "B", "C", "D"} {
			story = append(story, line{says: "of the known, " + name, at: at, client: name, asks: asks, passes: passes})
		}
		return story
	}
	full := []line{
		{says: "its full share in the next cycle", at: cycles(1), client: "new", asks: 8, passes: 8},
		{says: "which all have", at: cycles(1), sizes: "A=8 B=8 C=8 D=8 new=8"},
	}
	for _, c := range []struct {
		says string
		busy [2]int // requests of each known client at the start, and how many of them pass
		at   float64
		gets map[Reclaim]int
		next bool // the known clients use all they have, so the next cycle has default shares
	}{
		{"at the begin, all idle: its default share", [2]int{}, 0, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"in the middle, all idle: its default share", [2]int{}, 0.5, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"at the end, all idle: its default share", [2]int{}, 0.999, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"in the middle, half is used: what the known would not have had with it", [2]int{5, 5}, 0.5, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"at the end, half is used: its default share", [2]int{5, 5}, 0.999, map[Reclaim]int{AtOnce: 8, NextCycle: 8}, false},
		{"at the begin, all is used: nothing", [2]int{10, 10}, 0, map[Reclaim]int{AtOnce: 0, NextCycle: 0}, true},
		{"at the end, all is used: nothing", [2]int{10, 10}, 0.999, map[Reclaim]int{AtOnce: 0, NextCycle: 0}, true},
		{"at the end, 4 are left: no more than these", [2]int{9, 9}, 0.999, map[Reclaim]int{AtOnce: 4, NextCycle: 4}, false},
	} {
		for reclaim, gets := range c.gets {
			t.Run(c.says+"/"+reclaim.String(), func(t *testing.T) {
				l := storyOf(t, plain(func(c *Config) { c.Weights, c.Reclaim = pinned("A B C D"), reclaim }))
				var story []line
				if c.busy[0] > 0 {
					story = known(0, c.busy[0], c.busy[1])
				}
				story = append(story, line{says: "the newcomer", at: cycles(c.at), client: "new", asks: 8, passes: gets})
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
			story = append(story, line{says: "behind the new", at: cycles(cycle), client: name, cost: 41})
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
		{"who is idle for three cycles is forgotten, and its reservation comes back", func(c *Config) { c.ForgetAfter = 3 }, []line{
			{says: "A comes", client: "A", passes: 1},
			{says: "B comes", client: "B", passes: 1},
			{says: "both keep what they do not need", at: cycles(1), sizes: "A=20 B=20"},
			{says: "B asks for more, A for nothing", at: cycles(1), client: "B", cost: 41},
			{says: "A keeps its reservation", at: cycles(2), sizes: "A=2 B=38"},
			{says: "one idle cycle", at: cycles(2), client: "B", cost: 41},
			{says: "two", at: cycles(3), sizes: "A=2 B=38"},
			{says: "two", at: cycles(3), client: "B", cost: 41},
			{says: "three: A is forgotten", at: cycles(4), sizes: "B=40"},
			{says: "and may come again", at: cycles(4), client: "A", passes: 1},
		}},
		{"all are forgotten when nobody asks", func(c *Config) { c.ForgetAfter = 3 }, []line{
			{says: "A comes", client: "A", passes: 1},
			{says: "B comes", client: "B", passes: 1},
			{says: "three idle cycles later they are known no more", at: cycles(4), sizes: ""},
			{says: "who comes then is the first", at: cycles(4), client: "C", asks: 50, passes: 40},
		}},
		{"who is pinned is not forgotten", func(c *Config) { c.ForgetAfter, c.Weights = 1, pinned("P") }, []line{
			{says: "long after", at: cycles(1000), sizes: "P=40"},
		}},
		{"two names a cycle get shares of their own, the others have one together", few, []line{
			{says: "one", client: "A", passes: 1},
			{says: "two", client: "B", passes: 1},
			{says: "the third", client: "C", asks: 7, passes: 7},
			{says: "and the fourth share one", client: "D", asks: 50, passes: 6},
			{says: "a default share", sizes: "A=14 B=13 others=13"},
			{says: "in the next cycle two more", at: cycles(1), client: "E", asks: 1, passes: 1},
		}},
		{"the others have what nobody else asks for, and no more", few, []line{
			{says: "one", client: "A", passes: 1},
			{says: "two", client: "B", passes: 1},
			{says: "the others ask for much", client: "C", asks: 1000, passes: 13},
			{says: "what A and B do not ask for, but for their reservations", at: cycles(1), sizes: "A=2 B=1 others=37"},
		}},
		{"who is seen among the others in three cycles gets a share of its own", few, twoNew([]float64{0, 1, 2}, line{says: "late is known", at: cycles(2.5), sizes: "late"}, "late")},
		{"who is seen in three cycles with pauses in between does too", few, twoNew([]float64{0, 2, 4}, line{says: "late is known", at: cycles(4.5), sizes: "late"}, "late")},
		{"who is seen in two does not", few, twoNew([]float64{0, 1}, line{says: "late is not known", at: cycles(1.5), sizes: "!late"}, "late")},
		{"often in one cycle is once", few, twoNew([]float64{0}, line{says: "late is not known", at: cycles(0.5), sizes: "!late"}, "late", "late", "late", "late")},
		{"no more than max_clients", func(c *Config) { c.MaxClients, c.NewClientsPerCycle = 2, 2 }, []line{
			{says: "one", client: "A", passes: 1},
			{says: "two", client: "B", passes: 1},
			{says: "no more", client: "C", passes: 1},
			{says: "C is among the others", sizes: "A=14 B=13 others=13"},
			{says: "again", at: cycles(1), client: "C", passes: 1},
			{says: "again", at: cycles(2), client: "C", passes: 1},
			{says: "again", at: cycles(3), client: "C", passes: 1},
			{says: "and stays there", at: cycles(3), sizes: "!C"},
		}},
		{"who calls himself others is one of them", few, []line{
			{says: "he", client: "others", passes: 1},
			{says: "one", client: "A", passes: 1},
			{says: "two", client: "B", passes: 1},
			{says: "takes nobody's place", sizes: "A=14 B=13 others=13"},
			{says: "and is with them", client: "C", asks: 50, passes: 12},
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
		t.Errorf("the others are refused what nobody else asks for: %+v", d)
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
			t.Fatalf("cycle %d: %s share, and at most 3 clients and the others may", i, sizesOf(s))
		}
	}
}

// TestSizesHoldBesideNewcomer checks that under NextCycle all clients can use exactly the
// sizes that Shares and Decisions report, after a newcomer has joined.
func TestSizesHoldBesideNewcomer(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.Weights, c.Reclaim = pinned("A B C D"), NextCycle }))
	tell(t, l, []line{
		{says: "A asks for much, the others for little", client: "A", asks: 100, passes: 10},
		{says: "B", client: "B", asks: 2, passes: 2},
		{says: "C", client: "C", asks: 3, passes: 3},
	})
	now := storyStart.Add(cycles(1))
	if d, _ := l.Take(now, Request{Client: "new"}); d.Verdict != headgate.Allow || d.Limit != 8 || d.Remaining != 7 {
		t.Errorf("the newcomer: %+v", d)
	}
	for _, c := range l.Shares(now).Clients {
		admitted, remaining := c.Admitted, c.Size-c.Admitted
		for range 100 {
			d, _ := l.Take(now, Request{Client: c.Client})
			if d.Verdict == headgate.Allow {
				admitted++
			}
			if remaining = max(0, remaining-1); d.Remaining != remaining || d.Limit != c.Size {
				t.Fatalf("%s: %+v, want %d of %d remaining", c.Client, d, remaining, c.Size)
			}
		}
		if admitted != c.Size {
			t.Errorf("%s has the size %d and is admitted with %d", c.Client, c.Size, admitted)
		}
	}
}
