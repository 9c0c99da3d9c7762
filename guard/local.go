package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// wholeShare is the share of an instance that has no others beside it, in percent.
const wholeShare = 100

// ErrLocalShare says that a share is no part of a limit. LocalPolicy, New and
// Reload wrap it.
var ErrLocalShare = errors.New("local_share is out of range: use 1% to 100%")

// ShareError says that an instance's part of a limit is less than one unit, so that
// FallbackLocal would admit nothing, or, rounded up, more than the limit in all.
type ShareError struct {
	// Limit is the limit that was to be divided.
	Limit headgate.Limit
	// Share is the part of it that was asked for, in percent, and Least the smallest
	// part that is a whole unit.
	Share, Least int
}

// Error gives the problem and what to do in one sentence.
func (e *ShareError) Error() string {
	burst := ""
	if e.Limit.Burst > 0 {
		burst = fmt.Sprintf(" with a burst of %d", e.Limit.Burst)
	}
	return fmt.Sprintf("limit %s%s x %d%% is less than one request: raise local_share to %d%% or use deny",
		e.Limit, burst, e.Share, e.Least)
}

// LocalPolicy gives the part of a policy that one instance counts by itself while
// the store cannot answer (FallbackLocal). share is in percent, 1 to 100.
//
// Together 100/share instances never admit more than the policy does: Count, of
// windows and bans, and Burst, of the buckets, are rounded down. The buckets keep
// the exact part of the rate, in a longer period if need be (3/s x 25% is 3/4s),
// unless that is longer than limit.MaxPer. Of a leaky bucket one request an
// instance may depart at the same time. Nothing is taken ahead of need: Hold and
// Batch are left out. A limit of 0 stays one.
//
// The error is ErrLocalShare, or a *ShareError for a part that is less than one
// unit. Configurations check with it what New and Reload will refuse.
func LocalPolicy(policy headgate.Policy, share int) (headgate.Policy, error) {
	if share < 1 || share > wholeShare {
		return headgate.Policy{}, fmt.Errorf("%w, not %d%%", ErrLocalShare, share)
	}
	part := policy
	part.Hold, part.Batch = 0, 0
	l := policy.Limit
	if share == wholeShare || l.Count <= 0 || max(l.Count, l.Burst) > headgate.MaxUnits {
		return part, nil // Nothing to divide, or what every Prepare refuses.
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

// leastShare gives the smallest share, in percent, of which n units are one unit or more.
func leastShare(n int64) int { return int((wholeShare + n - 1) / n) }

// partOfRate gives share percent of a rate: exact, in the shortest multiple of its
// period that makes it whole, or rounded down where no limit is that long or great.
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
