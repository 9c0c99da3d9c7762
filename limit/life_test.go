package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// TestLife checks that a take counts no longer than Life, whether it was immediate or booked
// as far ahead as possible.
func TestLife(t *testing.T) {
	const start = headgate.Instant(1_704_110_400_000_000_000)
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		l := headgate.Limit{Count: 1 + r.Int64N(1000), Per: time.Millisecond + time.Duration(r.Int64N(int64(time.Hour)))}
		burst := l
		burst.Burst = 1 + r.Int64N(5000)
		for _, p := range []headgate.Policy{
			{Limit: burst, MaxWait: time.Duration(r.Int64N(int64(time.Hour)))},
			{Algorithm: headgate.LeakyBucket, Limit: burst, MaxWait: time.Hour},
			{Algorithm: headgate.FixedWindow, Limit: l},
			{Algorithm: headgate.Ban, Limit: l, BanFor: time.Minute},
		} {
			plan, err := limit.Compile(p)
			if err != nil {
				t.Fatal(err)
			}
			mode := headgate.Take
			if p.Algorithm <= headgate.LeakyBucket {
				mode = headgate.Book
			}
			now := start + headgate.Instant(r.Int64N(int64(time.Hour)))
			var c limit.Cell
			for range 3 {
				var d limit.Draw
				plan.JudgeCell(&c, now, limit.Room(p), mode, &d)
				if d.Verdict != headgate.Deny || plan.CountsRefused(true) {
					plan.TakeCell(&c, &d)
				}
			}
			if counts := plan.CellFreeAt(&c).Sub(now); counts > limit.Life(p) {
				t.Fatalf("%s %+v: a take counts for %v, longer than its Life of %v", p.Algorithm, p.Limit, counts, limit.Life(p))
			}
		}
	}
}
