package etcd

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/network"
)

const window = 50 * time.Millisecond

// TestJoinAndLeave: a new instance has no part at first, and gets one with the next plan. Two
// simultaneous instances need only one plan. An instance that leaves gives its part back long
// before its lease expires. No window has more than the limit.
func TestJoinAndLeave(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.set(100, window, Even)
	a := f.join("a")
	f.share(100, a)
	b := f.join("b")
	f.share(100, a, b)
	c, d := f.join("c"), f.join("d")
	f.share(100, a, b, c, d)
	for _, i := range []*instance{a, b, c, d} {
		if p := i.newest(); p.Instances != 4 || p.Part(0)+p.Part(1)+p.Part(2)+p.Part(3) != 100 {
			t.Errorf("%s has %+v: want a quarter", i.id, p)
		}
	}
	if a.newest().Index != 0 || b.newest().Index != 1 {
		t.Errorf("a and b have the indexes %d and %d: want the same as before", a.newest().Index, b.newest().Index)
	}
	b.end()
	f.share(100, a, c, d)
	if got := d.newest().Index; got != 1 && c.newest().Index != 1 {
		t.Errorf("no instance has the free index: d has %d", got)
	}
	f.atMost(100)
}

// TestLeaseExpires: two instances die at once. When their leases have expired, the others get
// their parts.
func TestLeaseExpires(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.config.TTL, f.config.OnLoss = time.Second, Stop
	f.set(100, window, Even)
	a, b, c := f.join("a"), f.join("b"), f.join("c")
	f.share(100, a, b, c)
	crashed := time.Now()
	b.crash()
	c.crash()
	f.share(100, a)
	t.Logf("after %v", time.Since(crashed))
	f.atMost(100)
}

// TestRestart: an instance restarts with its ID before its lease has expired. It takes over its
// membership, but not before the former process has stopped using it.
func TestRestart(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	f.config.OnLoss = Stop
	f.set(100, window, Even)
	a, b := f.join("a"), f.join("b")
	f.share(100, a, b)
	place := b.newest()
	b.crash()
	b = f.join("b")
	f.share(100, a, b)
	if p := b.newest(); !p.Equal(place) {
		t.Errorf("b has %+v: want its former part, %+v", p, place)
	}
	f.atMost(100)
}

// TestSameID: two instances have one ID. The first instance stops, and continues when the second
// has ended.
func TestSameID(t *testing.T) {
	t.Parallel()
	for _, onLoss := range []OnLoss{Hold, Stop} {
		t.Run(onLoss.String(), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t)
			f.config.OnLoss = onLoss
			f.set(100, window, Even)
			a, b := f.join("a"), f.join("b")
			f.share(100, a, b)
			second := f.join("b")
			f.share(100, a, second)
			if !b.lost() || !b.faulty("give each its own") {
				t.Errorf("the first b goes on: %q", b.faults)
			}
			second.end()
			f.share(100, a, b)
			if onLoss == Stop {
				f.atMost(100)
			} else { // an instance without a lease keeps its part until a plan leaves it out
				f.atMost(150)
			}
		})
	}
}

// TestCutOff: with Stop, an instance without etcd stops before others get its part. With Hold,
// it keeps its part, and the excess is at most that part. After the outage it has a part again,
// and with Hold it never stops.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		onLoss OnLoss
		story  string
		cut    func(*network.Link)
		most   int64
	}{
		{Hold, "silence", (*network.Link).HalfOpen, 120},
		{Hold, "refused", (*network.Link).Cut, 120},
		{Stop, "silence", (*network.Link).HalfOpen, 90},
		{Stop, "no answers", (*network.Link).NoAnswers, 90},
	} {
		t.Run(c.onLoss.String()+"/"+c.story, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t)
			f.config.OnLoss, f.config.TTL = c.onLoss, 2*time.Second
			f.set(90, window, Even)
			one, two, away := f.join("a"), f.join("b"), f.join("c")
			f.share(90, one, two, away)
			c.cut(away.link)
			if c.onLoss == Stop {
				f.share(90, one, two)
				if !away.lost() {
					t.Error("it goes on without the others")
				}
			} else {
				f.share(120, one, two, away)
			}
			away.link.Heal()
			f.share(90, one, two, away)
			f.atMost(c.most)
			if c.onLoss == Hold {
				f.steady(away, 30)
			}
		})
	}
}
