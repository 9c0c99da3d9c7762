package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testKept: after a return with Kept, a key is as if its request had taken only the kept units.
func (s *suite) testKept(t *testing.T) {
	s.each(t, headgate.Limit{Count: 70, Per: time.Minute}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		if p.Algorithm == headgate.Ban {
			return // Attempts cannot be returned.
		}
		r := rand.New(rand.NewPCG(1, uint64(p.Algorithm)))
		for range 100 {
			cost := 1 + r.Int64N(70)
			kept, later := r.Int64N(cost+1), time.Duration(r.Int64N(int64(90*time.Second))).Truncate(time.Microsecond)
			b.keepsAs(id, cost, kept, later)
			b.clock.Advance(5 * time.Minute)
		}
		b.keepsNothingTwice(id)
	})
}

// keepsAs compares a take of cost, of which kept units stay, with a take of kept.
func (b *bench) keepsAs(id headgate.PolicyID, cost, kept int64, later time.Duration) {
	b.t.Helper()
	part := b.take("part", id, cost).Receipt
	b.take("twin", id, kept)
	b.clock.Advance(later)
	part.Kept = kept
	b.giveBack(part, part)
	got := b.apply(headgate.Op{Key: "part", Policy: id, Kind: headgate.Peek, Cost: 1})[0]
	want := b.apply(headgate.Op{Key: "twin", Policy: id, Kind: headgate.Peek, Cost: 1})[0]
	if got != want {
		b.t.Errorf("%d of %d units kept, %v later: %+v, want %+v", kept, cost, later, got, want)
	}
}

// keepsNothingTwice: a receipt returns once, and returns nothing with a Kept out of range.
func (b *bench) keepsNothingTwice(id headgate.PolicyID) {
	b.t.Helper()
	r := b.take("once", id, 50).Receipt
	for _, kept := range []int64{-1, 51, 50} {
		r.Kept = kept
		b.giveBack(r)
		b.wantRemaining("after a return of nothing", "once", id, 20)
	}
	b.clock.Advance(5 * time.Minute)
	r = b.take("once", id, 50).Receipt
	r.Kept = 40
	b.giveBack(r)
	r.Kept = 0
	b.giveBack(r)
	b.wantRemaining("after two returns of one receipt", "once", id, 30)
}
