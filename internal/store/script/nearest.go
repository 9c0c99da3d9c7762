package script

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// doesNotFit says why a bucket's limit does not fit, and names the nearest that does.
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

// nearby is how many counts on either side are tried. A period of whole seconds has
// a count that fits within ten; a period that is an odd number of nanoseconds has none.
const nearby = 1000

// nearest gives a policy that fits and differs as little as can be: the period becomes
// whole microseconds, or the count moves by up to nearby, or the burst by what is
// needed, or the wait is left out, or the count moves far.
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
	// A count of up to two million fits with its own burst, whatever the period in microseconds.
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

// greatest gives the greatest n from 1 to most for which ok holds, or 0: ok holds
// up to some n and not beyond.
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
