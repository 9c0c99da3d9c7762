package schedule

import (
	"fmt"
	"time"
)

// MaxTurn bounds the windows of a turn, and with them the work and the memory of
// [Uneven]: half a mebibyte a plan.
const MaxTurn = 1 << 16

// Turns gives how many windows make a turn for [Uneven]: 1 where windows have many
// units an instance, else as many as make the parts fine enough.
func Turns(limit int64, instances int) int64 {
	const fine = 64 // Units an instance in a turn, at least.
	wanted := fine * int64(min(max(instances, 1), MaxInstances))
	if limit <= 0 || limit >= wanted {
		return 1
	}
	return min((wanted-1)/limit+1, MaxTurn)
}

// Uneven divides the limit by units: of each turn's T = [Turns](limit, instances) windows,
// which have limit*T units, instance k has units[k], and these must add up to all of
// them. Turns are counted from the Unix epoch, as windows are.
//
// With b the units of the instances before k, its part of a window is
//
//	floor((b + units[k] + j) / T) - floor((b + j) / T)
//
// where j is another number from 0 to T-1 in each window of a turn. So in every window
// the parts add up to the limit and each is less than one unit off units[k]/T, and over
// a turn each instance has just its units. With more instances than units of a turn
// some have none.
func Uneven(limit int64, per time.Duration, units []int64, index int) (Plan, error) {
	p := Plan{Limit: limit, Per: per, Instances: len(units), Index: index}
	if err := p.Check(); err != nil {
		return Plan{}, err
	}
	turns := Turns(limit, len(units))
	var all int64
	for k, n := range units {
		if n < 0 {
			return Plan{}, fmt.Errorf("%w: instance %d has %d units: they are 0 or more", ErrPlan, k, n)
		}
		if n > limit*turns-all {
			return Plan{}, fmt.Errorf("%w: the parts of %d instances are more than the %d units of %d windows",
				ErrPlan, len(units), limit*turns, turns)
		}
		if k < index {
			p.lo += n
		}
		all += n
	}
	if all != limit*turns {
		return Plan{}, fmt.Errorf("%w: the parts add up to %d of the %d units of %d windows", ErrPlan, all, limit*turns, turns)
	}
	p.hi = p.lo + units[index]
	p.step, p.sums = primeTo(turns), make([]int64, turns+1)
	for k := range turns {
		from, to := p.places(k)
		p.sums[k+1] = p.sums[k] + to - from
	}
	return p, nil
}

// windows gives the length of a turn of an uneven division.
func (p Plan) windows() int64 { return int64(len(p.sums)) - 1 }

// place gives j for window w: the windows of a turn go through all numbers below its
// length, in steps that keep near ones apart.
func (p Plan) place(w int64) int64 {
	n := p.windows()
	return product(modulo(w, n), p.step%n, n)
}

// places gives which of window w's units are this instance's: those in [from, to), when
// they are numbered by instance.
func (p Plan) places(w int64) (from, to int64) {
	j, n := p.place(w), p.windows()
	return (p.lo + j) / n, (p.hi + j) / n
}
