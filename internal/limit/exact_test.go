package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
)

const year = 365 * 24 * time.Hour

// TestSaturatedYear takes all remaining units at every tick of a year. The sum must be the
// rate times the year, plus the burst, to the unit.
func TestSaturatedYear(t *testing.T) {
	if race.On {
		return // It has one goroutine.
	}
	for _, c := range []struct {
		limit headgate.Limit
		tick  time.Duration
		want  int64
	}{
		{headgate.Limit{Count: 3, Per: time.Second, Burst: 50}, 16 * time.Second, 94_608_000 + 50},
		{headgate.Limit{Count: 1, Per: 24 * time.Hour}, time.Hour, 365 + 1},
		{headgate.Limit{Count: 7, Per: 24 * time.Hour}, time.Hour, 7*365 + 7},
		{headgate.Limit{Count: 100_000_000, Per: time.Second, Burst: 6_000_000_000}, time.Minute, 100_000_000 * (365*86_400 + 60)},
		{headgate.Limit{Count: 99_999_989, Per: time.Second, Burst: 99_999_989 * 60}, time.Minute, 99_999_989 * (365*86_400 + 60)},
		{headgate.Limit{Count: 999_999_937, Per: time.Hour}, time.Hour, 999_999_937 * (365*24 + 1)},
	} {
		t.Run(fmt.Sprintf("%s burst %d", c.limit, c.limit.Burst), func(t *testing.T) {
			p := mustCompile(t, headgate.Policy{Limit: c.limit})
			var cell Cell
			var draw Draw
			var d headgate.Decision
			var sum int64
			for now := headgate.Instant(0); now <= headgate.Instant(year); now += headgate.Instant(c.tick) {
				p.JudgeCell(&cell, now, 0, headgate.Peek, &draw)
				p.Explain(&draw, &d)
				p.JudgeCell(&cell, now, d.Remaining, headgate.Take, &draw)
				p.TakeCell(&cell, &draw)
				sum += d.Remaining
			}
			if sum != c.want {
				t.Errorf("%d units admitted, want %d", sum, c.want)
			}
		})
	}
}

// TestEveryRequestOfAYear sends all 94,608,003 requests that a limit of 3 per second
// admits in a year. Under the race detector it covers ten days.
func TestEveryRequestOfAYear(t *testing.T) {
	p := mustCompile(t, headgate.Policy{Limit: headgate.Limit{Count: 3, Per: time.Second}})
	long, want := year, 94_608_000+3
	if race.On {
		long, want = 10*24*time.Hour, 2_592_000+3
	}
	if n := saturate(p, long); n != want {
		t.Errorf("%d requests admitted, want %d", n, want)
	}
}

// saturate returns the number of admitted requests in [0, until]. Each request comes at the
// first nanosecond that RetryAfter allows.
func saturate(p *Plan, until time.Duration) int {
	var cell Cell
	var draw Draw
	n := 0
	for now := headgate.Instant(0); now <= headgate.Instant(until); {
		p.JudgeCell(&cell, now, 1, headgate.Take, &draw)
		if draw.Verdict == headgate.Deny {
			now = now.Add(draw.retry)
			continue
		}
		p.TakeCell(&cell, &draw)
		n++
	}
	return n
}

// TestRetryAfterIsExact checks that a refused request passes after RetryAfter, and not a
// nanosecond earlier. After ResetAfter the whole limit must be available.
func TestRetryAfterIsExact(t *testing.T) {
	for _, policy := range policies() {
		if policy.CountRejected {
			continue // A counted refusal is judged on a copy below.
		}
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 4))
			s := newSubject(t, policy)
			now := at(0)
			for range 100 {
				now += pause(policy, r)
				cost := costOf(policy, r)
				d := s.do(now, cost, headgate.Take)
				checkReset(t, s, d)
				if d.Verdict != headgate.Deny || d.Reason == headgate.Never {
					continue
				}
				if early := s.clone().do(now.Add(d.RetryAfter)-1, cost, headgate.Take); early.Verdict != headgate.Deny {
					t.Fatalf("%+v: cost %d passes before its RetryAfter of %v", policy, cost, d.RetryAfter)
				}
				if late := s.clone().do(now.Add(d.RetryAfter), cost, headgate.Take); late.Verdict == headgate.Deny {
					t.Fatalf("%+v: cost %d is refused after its RetryAfter of %v", policy, cost, d.RetryAfter)
				}
			}
		}
	}
}

// TestRetryAfterOfCountedRefusals checks that RetryAfter includes the refused attempt
// itself under CountRejected.
func TestRetryAfterOfCountedRefusals(t *testing.T) {
	for _, policy := range policies() {
		if !policy.CountRejected {
			continue
		}
		s := newSubject(t, policy)
		var d headgate.Decision
		for i := range headgate.Instant(20) {
			d = s.do(at(0)+i, max(policy.Limit.Count/3, 1), headgate.Take)
		}
		if d.Verdict != headgate.Deny {
			t.Fatalf("%+v: all 20 requests passed, want a refusal", policy)
		}
		cost := max(policy.Limit.Count/3, 1)
		if late := s.clone().do(d.At.Add(d.RetryAfter), cost, headgate.Take); late.Verdict == headgate.Deny {
			t.Errorf("%+v: the request is refused after its RetryAfter of %v", policy, d.RetryAfter)
		}
	}
}

func checkReset(t *testing.T, s *subject, d headgate.Decision) {
	t.Helper()
	if full := s.clone().do(d.At.Add(d.ResetAfter), 0, headgate.Peek); full.Remaining != full.Limit {
		t.Fatalf("%+v: %d of %d remain after the ResetAfter of %v", s.plan.Policy, full.Remaining, full.Limit, d.ResetAfter)
	}
}

// clone copies the state, so that a test can try later requests.
func (s *subject) clone() *subject {
	c := *s
	c.log.Ring = append([]int64(nil), s.log.Ring...)
	c.rings = nil
	for _, w := range s.rings {
		ring := *w
		ring.Counters = append([]int64(nil), w.Counters...)
		c.rings = append(c.rings, &ring)
	}
	return &c
}

// TestWholeIsTheSame checks that Step and RefuseStep decide as JudgeCell does.
func TestWholeIsTheSame(t *testing.T) {
	for _, l := range []headgate.Limit{{Count: 5, Per: time.Second}, {Count: 1, Per: time.Nanosecond * 1000}, {Count: 1_000_000_000, Per: time.Second}, {Count: 1, Per: time.Hour, Burst: 7}} {
		p := mustCompile(t, headgate.Policy{Limit: l})
		if !p.Whole() {
			t.Fatalf("%s: Whole() is false, want true", l)
		}
		r := rand.New(rand.NewPCG(5, 5))
		var cell Cell
		now := at(0)
		for range 20_000 {
			now += pause(p.Policy, r)
			cost := costOf(p.Policy, r)
			next, passes := p.Step(cell.Time, now, cost)
			var draw Draw
			var long, short headgate.Decision
			p.JudgeCell(&cell, now, cost, headgate.Take, &draw)
			p.Explain(&draw, &long)
			if passes != (long.Verdict == headgate.Allow) {
				t.Fatalf("%s at %v cost %d: Step passes %v, but JudgeCell passes %v", l, now, cost, passes, long.Verdict)
			}
			if !passes {
				if p.RefuseStep(cell.Time, now, next, cost, &short) && short != long {
					t.Fatalf("%s at %v cost %d:\nRefuseStep gives %+v\nJudgeCell gives  %+v", l, now, cost, short, long)
				}
				continue
			}
			p.TakeCell(&cell, &draw)
			p.Receipt(&draw, &long.Receipt)
			p.ExplainStep(now, next, cost, &short)
			if cell.Time != next || short != long {
				t.Fatalf("%s at %v cost %d:\nStep gives      %+v at %d\nJudgeCell gives %+v at %d", l, now, cost, short, next, long, cell.Time)
			}
		}
	}
}

// TestCarriedWindowsForgetNothing checks that a change of the period or of the number of
// sub-windows does not lower the estimate.
func TestCarriedWindowsForgetNothing(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 6))
		policy := func() headgate.Policy {
			return headgate.Policy{
				Algorithm: headgate.SlidingWindow, SubWindows: 1 + r.IntN(9),
				Limit: headgate.Limit{Count: 1000, Per: 3 * time.Minute},
			}
		}
		s := newSubject(t, policy())
		now := at(0)
		for range 60 {
			now += headgate.Instant(r.Int64N(int64(10 * time.Second)))
			s.do(now, r.Int64N(20), headgate.Take)
		}
		before := s.do(now, 0, headgate.Peek)
		s.change(policy())
		if after := s.do(now, 0, headgate.Peek); after.Remaining > before.Remaining {
			t.Fatalf("seed %d: Remaining rose from %d to %d by the change", seed, before.Remaining, after.Remaining)
		}
	}
}
