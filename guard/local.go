package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// wholeShare is the share, in percent, of an instance without others.
const wholeShare = 100

// ErrLocalShare says that a share is out of range. LocalPolicy, New and Reload wrap it.
var ErrLocalShare = errors.New("local_share is out of range: use 1% to 100%")

// ShareError says that an instance's part of a limit is less than one unit. FallbackLocal would
// admit nothing, or, rounded up, more than the limit over all instances.
type ShareError struct {
	// Limit is the limit to divide.
	Limit headgate.Limit
	// Share is the requested part, in percent. Least is the smallest part of a whole unit.
	Share, Least int
}

// Error gives the problem and the fix in one sentence.
func (e *ShareError) Error() string {
	burst := ""
	if e.Limit.Burst > 0 {
		burst = fmt.Sprintf(" with a burst of %d", e.Limit.Burst)
	}
	return fmt.Sprintf("limit %s%s x %d%% is less than one request: raise local_share to %d%% or use deny",
		e.Limit, burst, e.Share, e.Least)
}

// LocalPolicy gives the part of a policy that one instance counts by itself while the store does
// not answer (FallbackLocal). share is in percent, 1 to 100.
//
// 100/share instances together never admit more than the policy does. Count, of windows and bans,
// and Burst, of buckets, are rounded down. Buckets keep the exact part of the rate, in a longer
// period if needed (3/s x 25 % is 3/4s), unless that period is longer than limit.MaxPer. With a
// leaky bucket, one request of each instance may depart at the same time. Hold and Batch are
// left out. A limit of 0 stays 0.
//
// The error is ErrLocalShare, or a *ShareError for a part of less than one unit. Configurations use
// LocalPolicy to find what New and Reload would refuse.
func LocalPolicy(policy headgate.Policy, share int) (headgate.Policy, error) {
	if share < 1 || share > wholeShare {
		return headgate.Policy{}, fmt.Errorf("%w, not %d%%", ErrLocalShare, share)
	}
	part := policy
	part.Hold, part.Batch = 0, 0
	l := policy.Limit
	if share == wholeShare || l.Count <= 0 || max(l.Count, l.Burst) > headgate.MaxUnits {
		return part, nil // The limit is 0, or every Prepare refuses it.
	}
	room := l.Count
	if policy.Algorithm <= headgate.LeakyBucket {
		room = limit.Room(policy)
		part.Limit = partOfRate(l, share)
		part.Limit.Burst = partOf(room, share)
	} else {
		part.Limit.Count = partOf(room, share)
	}
	switch {
	case partOf(room, share) == 0:
		return headgate.Policy{}, &ShareError{Limit: l, Share: share, Least: leastShare(room)}
	case part.Limit.Count == 0:
		return headgate.Policy{}, &ShareError{Limit: l, Share: share, Least: leastShare(l.Count)}
	}
	return part, nil
}

// partOf gives share percent of n units, rounded down. MaxUnits x 100 is far below 2^63.
func partOf(n int64, share int) int64 { return n * int64(share) / wholeShare }

// leastShare gives the smallest share of n units, in percent, that is at least one unit.
func leastShare(n int64) int { return int((wholeShare + n - 1) / n) }

// partOfRate gives share percent of a rate. The result is exact, in the shortest multiple of the
// period that makes it whole. It is rounded down where that period or count is out of range.
func partOfRate(l headgate.Limit, share int) headgate.Limit {
	units := l.Count * int64(share)
	common := commonDivisor(units, wholeShare)
	periods := wholeShare / common
	if units/common > headgate.MaxUnits || int64(l.Per) > int64(limit.MaxPer)/periods {
		return headgate.Limit{Count: partOf(l.Count, share), Per: l.Per}
	}
	l.Count, l.Per = units/common, l.Per*time.Duration(periods)
	return l
}

func commonDivisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
