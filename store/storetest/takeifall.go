package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testTakeIfAll: in a refused group, an Op that passes alone counts nothing. A refused Op counts
// if its policy counts refused attempts.
func (s *suite) testTakeIfAll(t *testing.T) {
	s.each(t, headgate.Limit{Count: 4, Per: time.Minute}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		op := func(key string, cost int64) headgate.Op {
			return headgate.Op{Key: key, Policy: id, Cost: cost, Kind: headgate.TakeIfAll}
		}
		passed := b.apply(op("free", 1), op("late", 2))
		b.wantRemaining("a group that passes", "free", id, 3)
		b.wantRemaining("its other Op", "late", id, 2)
		b.giveBack(passed[0].Receipt, passed[1].Receipt)
		b.wantRemaining("after the return", "late", id, 4)
		b.take("full", id, 4)
		for range 2 {
			ds := b.apply(op("free", 1), op("full", 1), op("late", 1))
			b.wantReason("the Op without capacity", ds[1], excess(p))
			for _, i := range []int{0, 2} {
				if ds[i].Verdict != headgate.Allow || !ds[i].Receipt.Empty() || ds[i].Remaining != 4 {
					b.t.Errorf("op %d passes alone: got %v, receipt %+v, %d remaining", i, ds[i].Verdict, ds[i].Receipt, ds[i].Remaining)
				}
			}
		}
		b.wantRemaining("a refused group", "free", id, 4)
		b.wantReason("a group of one", b.apply(op("free", 4))[0], headgate.WithinLimit)
		b.wantRemaining("a group of one", "free", id, 0)
	})
	for _, p := range s.offered(headgate.Limit{Count: 4, Per: time.Minute}) {
		if p.Algorithm == headgate.FixedWindow || p.Algorithm == headgate.SlidingWindow {
			t.Run(p.Algorithm.String()+" counting refused attempts", func(t *testing.T) { countsRefusedOnly(s.bench(t), p) })
		}
	}
}

// testTakeIfAllBack: after a long step back of the clock, an Op that passes alone in a refused group moves the state to the present,
// as other Ops do. So the units count from there, and not from the next request.
func (s *suite) testTakeIfAllBack(t *testing.T) {
	s.each(t, headgate.Limit{Count: 4, Per: time.Minute}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		if p.Algorithm < headgate.FixedWindow || p.Algorithm == headgate.Ban {
			return // A bucket becomes full at a step back, and refuses this Op. A ban is longer than its window.
		}
		none := b.prepare(policy(p.Algorithm, headgate.Limit{Per: time.Minute}))
		b.take("k", id, 2)
		b.clock.Advance(-10 * time.Minute)
		ds := b.apply(
			headgate.Op{Key: "k", Policy: id, Cost: 1, Kind: headgate.TakeIfAll},
			headgate.Op{Key: "k", Policy: none, Window: 1, Cost: 1, Kind: headgate.TakeIfAll})
		if ds[0].Verdict != headgate.Allow || ds[1].Verdict != headgate.Deny {
			b.t.Errorf("the group is decided %v and %v, want allow and deny", ds[0].Verdict, ds[1].Verdict)
		}
		b.clock.Advance(3 * time.Minute)
		b.wantRemaining("three minutes later", "k", id, 4)
	})
}

// testTakeIfAllTogether: many callers take pairs at once. No pair passes by half, and none above
// the limit. A store that decides in two rounds returns what a refused second round took.
func (s *suite) testTakeIfAllTogether(t *testing.T) {
	const most = 100
	s.each(t, headgate.Limit{Count: most, Per: time.Hour}, func(b *bench, _ headgate.Policy, id headgate.PolicyID) {
		var pairs atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 60 {
					x := headgate.Op{Key: "x", Policy: id, Cost: 1, Kind: headgate.TakeIfAll}
					y := headgate.Op{Key: "y", Policy: id, Cost: 1, Kind: headgate.TakeIfAll}
					if i%2 == 0 {
						x, y = y, x
					}
					pairs.Add(b.countPassed(x, y))
				}
			})
		}
		all.Wait()
		passed := pairs.Load()
		if passed%2 != 0 || passed > 2*most || !s.apart && passed < 2*most || passed == 0 {
			b.t.Errorf("%d Ops passed in pairs, want %d pairs", passed, most)
		}
		for _, key := range []string{"x", "y"} {
			if left := b.remaining(key, id); left < 0 || left > most-passed/2 {
				b.t.Errorf("%s has %d left after %d pairs", key, left, passed/2)
			}
		}
	})
}

// countsRefusedOnly checks the counts of a refused group under a version with a larger Count.
func countsRefusedOnly(b *bench, p headgate.Policy) {
	p.CountRejected = true
	id := b.prepare(p)
	wide, all := p, p
	wide.Limit.Count = 100
	look := b.prepare(wide)
	op := func(key string, cost int64) headgate.Op {
		return headgate.Op{Key: key, Policy: id, Cost: cost, Kind: headgate.TakeIfAll}
	}
	b.take("x", id, 3)
	b.take("y", id, 2)
	d := b.apply(op("x", 2), op("free", 2), op("y", 3))
	b.wantReason("the Op that passes", d[1], headgate.WithinLimit)
	if d[0].Remaining != 1 || d[1].Remaining != 4 || d[2].Remaining != 2 {
		b.t.Errorf("%d, %d and %d remain, want 1, 4 and 2", d[0].Remaining, d[1].Remaining, d[2].Remaining)
	}
	b.wantRemaining("a refused Op", "x", look, 95)
	b.wantRemaining("the Op that passes", "free", look, 100)
	b.wantRemaining("another refused Op", "y", look, 95)
	b.apply(op("x", 2), op("free", 5))
	b.wantRemaining("a refused Op beside one that can never pass", "x", look, 95)
	b.wantRemaining("an Op that can never pass", "free", look, 100)
	b.apply(op("x", 2))
	b.wantRemaining("a refused group of one", "x", look, 93)
	if p.Algorithm != headgate.FixedWindow {
		return
	}
	all.CountAll = true
	counts := b.prepare(all)
	b.apply(headgate.Op{Key: "x", Policy: counts, Cost: 9, Kind: headgate.TakeIfAll}, op("free", 1), op("y", 9))
	b.wantRemaining("an Op with CountAll that can never pass", "x", look, 84)
	b.wantRemaining("an Op that can never pass, without CountAll", "y", look, 95)
	b.wantRemaining("an Op that passes beside them", "free", look, 100)
}
