package schedule

import (
	"fmt"
	"time"
)

// MaxTurn is the maximum number of windows in a turn. It bounds the time and the memory of
// [Uneven], to half a mebibyte for each plan.
const MaxTurn = 1 << 16

// Turns returns the number of windows in a turn for [Uneven]. The number is 1 if a window has
// many units for each instance, and otherwise large enough for precise parts.
func Turns(limit int64, instances int) int64 {
	const fine = 64 // minimum of units in a turn for each instance
	wanted := fine * int64(min(max(instances, 1), MaxInstances))
	if limit <= 0 || limit >= wanted {
		return 1
	}
	return min((wanted-1)/limit+1, MaxTurn)
}

// Uneven divides the limit by units. A turn has T = [Turns](limit, instances) windows with
// limit*T units. Instance k has units[k] units in a turn. All units must add up to limit*T.
// Turns are counted from the Unix epoch, like windows.
//
// Let b be the units of the instances before k. The part of instance k in a window is
//
//	floor((b + units[k] + j) / T) - floor((b + j) / T)
//
// where j is a different number from 0 to T-1 in each window of a turn. So in every window,
// the parts add up to the limit, and each part differs from units[k]/T by less than one
// unit. Over a turn, each instance has exactly its units. If there are more instances than
// units in a turn, some instances have no units.
func Uneven(limit int64, per time.Duration, units []int64, index int) (Plan, error) {
	p := Plan{Limit: limit, Per: per, Instances: len(units), Index: index}
	if err := p.Check(); err != nil {
		return Plan{}, err
	}
	turns := Turns(limit, len(units))
	var all int64
	for k, n := range units {
		if n < 0 {
			return Plan{}, fmt.Errorf("%w: instance %d has %d units: use 0 or more", ErrPlan, k, n)
		}
		if n > limit*turns-all {
			return Plan{}, fmt.Errorf("%w: the units of %d instances add up to more than the %d units of %d windows: use exactly as many",
				ErrPlan, len(units), limit*turns, turns)
		}
		if k < index {
			p.lo += n
		}
		all += n
	}
	if all != limit*turns {
		return Plan{}, fmt.Errorf(
			"%w: the instances' units add up to %d, but %d windows have %d units: use exactly as many", ErrPlan, all, turns, limit*turns)
	}
	p.hi = p.lo + units[index]
	p.step, p.sums = primeTo(turns), make([]int64, turns+1)
	for k := range turns {
		from, to := p.places(k)
		p.sums[k+1] = p.sums[k] + to - from
	}
	return p, nil
}

// windows returns the number of windows in a turn of an uneven division.
func (p Plan) windows() int64 { return int64(len(p.sums)) - 1 }

// place returns the number j of window w. The windows of a turn have all numbers below the
// turn's length, and p.step keeps the numbers of near windows apart.
func (p Plan) place(w int64) int64 {
	n := p.windows()
	return product(modulo(w, n), p.step%n, n)
}

// places returns this instance's units of window w: the units in [from, to), numbered by
// instance.
func (p Plan) places(w int64) (from, to int64) {
	j, n := p.place(w), p.windows()
	return (p.lo + j) / n, (p.hi + j) / n
}
