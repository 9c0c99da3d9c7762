package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// Bounds of a plan. Within them every product of this package fits in 127 bits, and
// every quotient that matters in 63.
const (
	MaxLimit     = 1 << 40
	MaxInstances = 1 << 20
	MaxPer       = 366 * 24 * time.Hour
	MinPer       = time.Millisecond
)

// ErrPlan says that a plan is none; the error that wraps it says what to write instead.
var ErrPlan = errors.New("pace: not a plan")

// Plan says how many units of a provider's limit are one instance's in each window.
// Windows are numbered from the Unix epoch: window w is [w*Per, (w+1)*Per), and those
// before 1970 have negative numbers.
//
// [Even] and [Uneven] make plans. The zero Plan admits nothing. A Plan is a value, and
// is not changed once made: any number of goroutines may use it.
type Plan struct {
	Limit     int64         // units a window, of all instances together
	Per       time.Duration // a window's length
	Instances int
	Index     int // 0 to Instances-1

	// For an uneven division, of each turn's units those in [lo, hi) are this instance's,
	// and sums has how many of them are in the first k windows, from k = 0 to the turn's
	// length. It is nil for an even one.
	lo, hi int64
	step   int64 // by which the windows of a turn go through all places
	sums   []int64
}

// Even divides the limit evenly: see [Plan.Part].
func Even(limit int64, per time.Duration, instances, index int) (Plan, error) {
	p := Plan{Limit: limit, Per: per, Instances: instances, Index: index}
	if err := p.Check(); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// Check says what is wrong with a plan that was not made by [Even] or [Uneven].
func (p Plan) Check() error {
	switch {
	case p.Limit < 0 || p.Limit > MaxLimit:
		return fmt.Errorf("%w: limit %d: it is from 0 to %d", ErrPlan, p.Limit, int64(MaxLimit))
	case p.Per < MinPer || p.Per > MaxPer:
		return fmt.Errorf("%w: a window of %v: it is from %v to %v", ErrPlan, p.Per, MinPer, MaxPer)
	case p.Instances < 1 || p.Instances > MaxInstances:
		return fmt.Errorf("%w: %d instances: they are from 1 to %d", ErrPlan, p.Instances, MaxInstances)
	case p.Index < 0 || p.Index >= p.Instances:
		return fmt.Errorf("%w: index %d of %d instances: it is from 0 to %d", ErrPlan, p.Index, p.Instances, p.Instances-1)
	case p.sums != nil && (p.windows() != Turns(p.Limit, p.Instances) || p.hi > p.Limit*p.windows()):
		return fmt.Errorf("%w: an uneven plan was changed: make it anew", ErrPlan)
	}
	return nil
}

// Window gives the number of the window that t is in.
func (p Plan) Window(t headgate.Instant) int64 {
	if p.Per <= 0 {
		return 0
	}
	return quotientDown(int64(t), int64(p.Per))
}

// Start gives the time at which window w begins, or the nearest that there is.
func (p Plan) Start(w int64) headgate.Instant {
	if p.Per <= 0 {
		return 0
	}
	const last = 1<<63 - 1
	per := int64(p.Per)
	return headgate.Instant(min(max(w, -last/per), last/per) * per)
}

// Part gives this instance's units of window w. For an even division they are
//
//	floor(((w+1)R + i) / N) - floor((wR + i) / N)
//
// so that the parts of all instances add up to R in every window, and one instance has
// in any run of windows less than one unit more or less than its even part of the run.
// For an uneven one see [Uneven].
func (p Plan) Part(w int64) int64 {
	if p.sums != nil {
		k := modulo(w, p.windows())
		return p.sums[k+1] - p.sums[k]
	}
	return p.count(w, 0, p.Limit)
}

// Most gives the largest part that any window can have.
func (p Plan) Most() int64 {
	switch {
	case p.Limit <= 0 || p.Instances < 1:
		return 0
	case p.sums == nil:
		return (p.Limit-1)/int64(p.Instances) + 1
	}
	return (p.hi - p.lo + p.windows() - 1) / p.windows()
}

// Equal says whether two plans are the same division, and so give the same parts.
func (p Plan) Equal(o Plan) bool {
	return p.Limit == o.Limit && p.Per == o.Per && p.Instances == o.Instances && p.Index == o.Index &&
		p.lo == o.lo && p.hi == o.hi && (p.sums == nil) == (o.sums == nil)
}
