package script

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// doesNotFit gives the error for a bucket that the scripts cannot count exactly. The error names the
// nearest policy that fits.
func doesNotFit(policy headgate.Policy) error {
	near := nearest(policy)
	field, fix := "count", "use "+near.Limit.String()
	if near.Limit.Burst != policy.Limit.Burst {
		field, fix = "burst", fmt.Sprintf("%s with a burst of %d", fix, near.Limit.Burst)
	}
	if near.MaxWait != policy.MaxWait {
		field, fix = "max_wait", fmt.Sprintf("%s and a max_wait of %s", fix, near.MaxWait)
	}
	if near.Limit.Per != policy.Limit.Per {
		field = "period"
	}
	const problem = "takes numbers beyond 2^53, where Redis's scripts stop being exact"
	return &limit.PolicyError{
		Field: field, Problem: fmt.Sprintf("of %s, burst %d, %s", policy.Limit, limit.Room(policy), problem), Fix: fix,
	}
}

// nearby is the number of counts that nearest tries in each direction. For a period of whole seconds,
// one of the ten nearest counts fits. For a period of an odd number of nanoseconds, none fits.
const nearby = 1000

// nearest gives a similar policy that fits. It tries these changes in order: round the period to
// whole microseconds, change the count by less than nearby, reduce the burst, remove the wait, and
// reduce the count.
func nearest(policy headgate.Policy) headgate.Policy {
	whole := policy
	if whole.Limit.Per = policy.Limit.Per.Round(time.Microsecond); fits(whole) {
		return whole
	}
	for step := range int64(nearby) {
		for _, count := range []int64{policy.Limit.Count - step, policy.Limit.Count + step} {
			near := policy
			if near.Limit.Count = count; count > 0 && count <= headgate.MaxUnits && fits(near) {
				return near
			}
		}
	}
	near := policy
	near.Limit.Burst = greatest(limit.Room(policy), func(n int64) bool {
		smaller := policy
		smaller.Limit.Burst = n
		return fits(smaller)
	})
	if near.Limit.Burst > 0 {
		return near
	}
	near = policy
	if near.MaxWait = 0; fits(near) {
		return near
	}
	// A count of up to two million fits with a burst of the same size, for every period of
	// microseconds.
	near = whole
	near.MaxWait, near.Limit.Burst, near.Limit.Count = 0, 0, min(policy.Limit.Count, 2_000_000)
	return near
}

// fits reports whether the scripts can count a bucket exactly.
func fits(policy headgate.Policy) bool {
	if _, err := limit.Compile(policy); err != nil {
		return false
	}
	p := &Plan{policy: policy, room: limit.Room(policy), den: 1, maxWait: policy.MaxWait.Microseconds()}
	return p.derive()
}

// greatest gives the largest n from 1 to most for which ok is true, or 0 if there is none. ok must be
// true up to some n and false above it.
func greatest(most int64, ok func(int64) bool) int64 {
	low := int64(0)
	for low < most {
		if middle := most - (most-low)/2; ok(middle) {
			low = middle
		} else {
			most = middle - 1
		}
	}
	return low
}
