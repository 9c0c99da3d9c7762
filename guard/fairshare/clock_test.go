package fairshare

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestClockSteps checks that a step back of the clock admits no unit twice and does not block
// for long.
func TestClockSteps(t *testing.T) {
	for _, c := range []struct {
		says  string
		story []line
	}{
		{"a step back within the cycle", []line{
			{says: "half of the units are used", at: cycles(0.9), client: "A", requests: 10, passes: 10},
			{says: "at an earlier time, the same units are left", at: cycles(0.1), client: "A", requests: 50, passes: 10},
			{says: "no units are left", at: cycles(0.95), client: "A"},
		}},
		{"a step back into the previous cycle", []line{
			{says: "all units are used", at: cycles(5), client: "A", requests: 50, passes: 20},
			{says: "after a small step back, the client is refused", at: cycles(4.5), client: "A"},
			{says: "the cycle continues to its end", at: cycles(5.999), client: "A"},
			{says: "another cycle starts, and B lends units", at: cycles(6), client: "A", requests: 50, passes: 38},
		}},
		{"a step back by a whole cycle", []line{
			{says: "all units are used", at: cycles(5), client: "A", requests: 50, passes: 20},
			{says: "one cycle back", at: cycles(4), client: "A"},
			{says: "forward again", at: cycles(5.5), client: "A"},
		}},
		{"a large step back", []line{
			{says: "all units are used", at: cycles(5), client: "A", requests: 50, passes: 20},
			{says: "the units stay used in the cycle of the new time", at: cycles(2.5), client: "A"},
			{says: "the units stay used to the end of that cycle", at: cycles(2.999), client: "A"},
			{says: "the next cycle starts soon", at: cycles(3), client: "A", requests: 50, passes: 38},
		}},
		{"a large step back with unused units", []line{
			{says: "some units are used", at: cycles(5), client: "A", requests: 5, passes: 5},
			{says: "the other units are left", at: cycles(-100), client: "A", requests: 50, passes: 15},
		}},
		{"before 1970", []line{
			{says: "all units are used", at: -2 * time.Duration(storyStart), client: "A", requests: 50, passes: 20},
			{says: "the units stay used to the end of that cycle", at: -2*time.Duration(storyStart) + cycles(0.999), client: "A"},
			{says: "another cycle starts", at: -2*time.Duration(storyStart) + cycles(1), client: "A", requests: 50, passes: 38},
		}},
	} {
		t.Run(c.says, func(t *testing.T) {
			tell(t, storyOf(t, plain(func(c *Config) { c.Reclaim, c.Weights = NextCycle, pinned("A B") })), c.story)
		})
	}
}

// TestClockStepsBackAndForth checks that no aligned cycle is admitted twice when the clock
// makes a large step back and then forward.
func TestClockStepsBackAndForth(t *testing.T) {
	for _, reclaim := range Reclaims() {
		l := storyOf(t, plain(func(c *Config) { c.Reclaim = reclaim }))
		tell(t, l, []line{
			{says: "all units are used", at: cycles(5.1), client: "A", requests: 50, passes: 40},
			{says: "a large step back", at: cycles(2.5), client: "A"},
			{says: "forward again, into the cycle without units", at: cycles(5.2), client: "A"},
		})
	}
}

// TestLateCallers checks that no cycle starts twice when delayed callers use a clock reading
// that is more than a cycle old.
func TestLateCallers(t *testing.T) {
	const ms = headgate.Instant(time.Millisecond)
	for _, late := range [][]headgate.Instant{{15}, {5}, {5, 15}, {15, 5, 25}} { // in milliseconds
		for _, reclaim := range Reclaims() {
			l, err := New(0, Config{Capacity: 40, Cycle: LeastCycle, Reclaim: reclaim, Weights: pinned("A B"), ForgetAfter: 1, MaxClients: 2})
			if err != nil {
				t.Fatal(err)
			}
			admitted := 0
			take := func(at headgate.Instant) {
				for _, name := range []string{"A", "B"} {
					d, _ := l.Take(at*ms, Request{Client: name, Cost: 20})
					if d.Verdict == headgate.Allow && d.At >= 30*ms {
						admitted += 20
					}
				}
			}
			take(31)
			for _, at := range late {
				take(at)
			}
			take(32)
			if admitted > 40 {
				t.Errorf("%v, callers %d ms late: the cycle of 30 to 40 ms admits %d units, want at most 40", reclaim, late, admitted)
			}
		}
	}
}

// TestAt checks Decision.At: the time of the call, or the start of the cycle that counts the
// request.
func TestAt(t *testing.T) {
	l := storyOf(t, plain(nil))
	for _, c := range []struct{ now, at, reset time.Duration }{
		{0, 0, storyCycle},
		{1, 1, storyCycle - 1},
		{storyCycle - 1, storyCycle - 1, 1},
		{storyCycle, storyCycle, storyCycle},
		{storyCycle - 2, storyCycle, storyCycle}, // A small step back.
		{-cycles(3) + 5, -cycles(3) + 5, storyCycle - 5},
	} {
		d, _ := l.Take(storyStart.Add(c.now), Request{Client: "A"})
		if got := d.At.Sub(storyStart); got != c.at || d.ResetAfter != c.reset {
			t.Errorf("at %v: At is %v and ResetAfter %v, want %v and %v", c.now, got, d.ResetAfter, c.at, c.reset)
		}
	}
}

// TestIdleCycles checks that cycles without requests are counted, with demands of 0.
func TestIdleCycles(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.Weights = pinned("A B") }))
	for range 30 {
		l.Take(storyStart, Request{Client: "A"})
	}
	for _, c := range []struct {
		at                              float64
		cycle                           uint64
		sizes                           string
		demand                          int64
		admitted, lastAdmitted, lastCap int64
	}{
		{0.5, 1, "A=20 B=20", 0, 20, 0, 0},
		{1, 2, "A=30 B=10", 30, 0, 20, 40},
		{3, 4, "A=20 B=20", 0, 0, 0, 40},
		{1003.5, 1004, "A=20 B=20", 0, 0, 0, 40},
	} {
		s := l.Shares(storyStart.Add(cycles(c.at)))
		if got := sizesOf(s); got != c.sizes || s.Cycle != c.cycle || s.Clients[0].Demand != c.demand ||
			s.Admitted != c.admitted || s.LastAdmitted != c.lastAdmitted || s.LastCapacity != c.lastCap {
			t.Errorf("at %v: %+v, want %+v", c.at, s, c)
		}
		if start := storyStart.Add(cycles(float64(c.cycle - 1))); s.Start != start || s.End != start.Add(storyCycle) {
			t.Errorf("at %v: the cycle starts at %d and ends at %d, want start %d", c.at, s.Start, s.End, start)
		}
	}
}
