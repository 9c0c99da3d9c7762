package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
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

// TestLifeOfCalendar checks the same for windows of the calendar, after a step back of the clock by a window: the take
// counts in the window that the step has left.
func TestLifeOfCalendar(t *testing.T) {
	for unit := headgate.Day; unit <= headgate.Year; unit++ {
		p := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Calendar: unit}}
		plan, err := limit.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		longest := limit.LongestWindow(unit)
		start := headgate.Instant(1_704_067_200_000_000_000)
		edges := headgate.Edges{start.Add(-longest), start, start.Add(longest), start.Add(2 * longest)}
		var c limit.Cell
		draw := limit.Draw{Edges: &edges}
		for _, now := range []headgate.Instant{start, start.Add(-longest)} {
			plan.JudgeCell(&c, now, 1, headgate.Take, &draw)
			plan.TakeCell(&c, &draw)
			var r headgate.Receipt
			plan.Receipt(&draw, &r)
			life := limit.Life(p)
			if counts := plan.CellFreeAt(&c).Sub(now); r.From != start || counts > life {
				t.Errorf("%s: a take at %s counts from %s for %v, longer than its Life of %v", unit, now.Time(), r.From.Time(), counts, life)
			}
			copied := c
			if plan.ReturnCell(&copied, &draw.Ended, &r, now.Add(life)) {
				t.Errorf("%s: a receipt returns units at the end of its Life of %v", unit, life)
			}
		}
	}
}
