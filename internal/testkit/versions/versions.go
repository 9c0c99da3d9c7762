// Package versions judges two versions of one limit at work on one key, as during a rolling deploy.
package versions

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Deploy is a rolling deploy: two instances have two versions of one limit.
type Deploy struct{ Was, Is headgate.Policy }

// Constant is the number of units that two versions may admit beyond the bound of each alone:
// the larger Burst or Count.
func (d Deploy) Constant() int64 { return max(limit.Room(d.Was), limit.Room(d.Is)) }

// early lengthens the interval of the bound. A unit that is spent in an interval may have been
// granted up to a hold earlier. With one hold and one division into sub-windows, the bound
// is that of the limits.
func (d Deploy) early() time.Duration {
	if d.Was.Hold == d.Is.Hold && d.Was.SubWindows == d.Is.SubWindows {
		return 0
	}
	return max(d.Was.Hold, d.Is.Hold)
}

// admits bounds the units that one version alone admits between two times, both included.
func admits(p headgate.Policy, from, to headgate.Instant) int64 {
	count, per := p.Limit.Count, headgate.Instant(p.Limit.Per)
	switch p.Algorithm {
	case headgate.FixedWindow:
		return count * int64(to/per-from/per+1)
	case headgate.SlidingLog:
		return count * int64((to-from)/per+1)
	case headgate.SlidingWindow:
		// At each take, N neighbouring sub-windows hold at most Count units.
		n := headgate.Instant(p.SubWindows)
		return count * int64((to*n/per-from*n/per+n)/n)
	default:
		return limit.Room(p) + int64(to-from)*count/int64(per)
	}
}

// Deploys has a pair for each algorithm that can be prefetched.
func Deploys() map[string]Deploy {
	hold := 50 * time.Millisecond
	policy := func(a headgate.Algorithm, count, burst int64, n int, hold time.Duration) headgate.Policy {
		return headgate.Policy{
			Algorithm: a, Limit: headgate.Limit{Count: count, Per: time.Second, Burst: burst}, SubWindows: n, Hold: hold, Batch: count / 8,
		}
	}
	unnamed := headgate.Policy{Limit: headgate.Limit{Count: 120, Per: time.Second, Burst: 60}}
	return map[string]Deploy{
		"log":             {policy(headgate.SlidingLog, 80, 0, 0, hold), policy(headgate.SlidingLog, 120, 0, 0, hold)},
		"bucket":          {policy(headgate.TokenBucket, 100, 40, 0, hold), policy(headgate.TokenBucket, 160, 80, 0, hold)},
		"bucket, burst":   {policy(headgate.TokenBucket, 100, 20, 0, hold), policy(headgate.TokenBucket, 100, 100, 0, hold)},
		"bucket, rate":    {policy(headgate.TokenBucket, 60, 60, 0, hold), policy(headgate.TokenBucket, 400, 60, 0, hold)},
		"bucket, holds":   {policy(headgate.TokenBucket, 100, 60, 0, hold), policy(headgate.TokenBucket, 120, 60, 0, 4*hold)},
		"bucket, one":     {policy(headgate.TokenBucket, 100, 60, 0, hold), unnamed},
		"fixed":           {policy(headgate.FixedWindow, 80, 0, 0, hold), policy(headgate.FixedWindow, 120, 0, 0, hold)},
		"sliding":         {policy(headgate.SlidingWindow, 80, 0, 10, hold), policy(headgate.SlidingWindow, 120, 0, 10, hold)},
		"sliding, others": {policy(headgate.SlidingWindow, 80, 0, 4, 2*hold), policy(headgate.SlidingWindow, 120, 0, 10, 2*hold)},
	}
}

// Spend is one request that passed: its time by the decision, and the time by the source's clock at which the request
// really went on.
type Spend struct {
	At, Truly headgate.Instant
	Cost      int64
}

// Judge compares every interval with the bound of both versions, by the decisions' times and by true times.
func (d Deploy) Judge(tb testing.TB, spends []Spend) {
	tb.Helper()
	for _, when := range []func(Spend) headgate.Instant{
		func(s Spend) headgate.Instant { return s.At },
		func(s Spend) headgate.Instant { return s.Truly },
	} {
		all := slices.Clone(spends)
		slices.SortStableFunc(all, func(a, b Spend) int { return cmp.Compare(when(a), when(b)) })
		for i := range all {
			from, sum := when(all[i]).Add(-d.early()), int64(0)
			for _, s := range all[i:] {
				sum += s.Cost
				to := when(s)
				if most := max(admits(d.Was, from, to), admits(d.Is, from, to)) + d.Constant(); sum > most {
					tb.Fatalf("%d have passed in %v, more than %d", sum, to.Sub(when(all[i])), most)
				}
			}
		}
		if len(all) < 100 {
			tb.Errorf("only %d have passed", len(all))
		}
	}
}
