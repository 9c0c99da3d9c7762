package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// Bounds of a plan. Within these bounds, products in this package fit in 127 bits. Results
// fit in 63 bits, or are replaced by the largest int64.
const (
	MaxLimit     = 1 << 40
	MaxInstances = 1 << 20
	MaxPer       = 366 * 24 * time.Hour
	MinPer       = time.Millisecond
)

// ErrPlan means that a plan is invalid. The error that wraps ErrPlan says what to write instead.
var ErrPlan = errors.New("pace: invalid plan")

// Plan determines one instance's units of a provider's limit in each window. Windows are
// numbered from the Unix epoch: window w is [w*Per, (w+1)*Per), and windows before 1970
// have negative numbers.
//
// [Even] returns plans. The zero Plan admits nothing. A Plan is a value and is
// never modified, so any number of goroutines may use it.
type Plan struct {
	Limit     int64         // units of all instances together in a window
	Per       time.Duration // length of a window
	Instances int
	Index     int // 0 to Instances-1
}

// Even divides the limit evenly. [Plan.Part] has the formula.
func Even(limit int64, per time.Duration, instances, index int) (Plan, error) {
	p := Plan{Limit: limit, Per: per, Instances: instances, Index: index}
	if err := p.Check(); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// Check returns an error for an invalid plan. [Even] returns only valid plans.
func (p Plan) Check() error {
	switch {
	case p.Limit < 0 || p.Limit > MaxLimit:
		return fmt.Errorf("%w: limit %d: use a limit from 0 to %d", ErrPlan, p.Limit, int64(MaxLimit))
	case p.Per < MinPer || p.Per > MaxPer:
		return fmt.Errorf("%w: a window of %v: use a window from %v to %v", ErrPlan, p.Per, MinPer, MaxPer)
	case p.Instances < 1 || p.Instances > MaxInstances:
		return fmt.Errorf("%w: %d instances: use from 1 to %d instances", ErrPlan, p.Instances, MaxInstances)
	case p.Index < 0 || p.Index >= p.Instances:
		return fmt.Errorf("%w: index %d of %d instances: use an index from 0 to %d", ErrPlan, p.Index, p.Instances, p.Instances-1)
	}
	return nil
}

// Window returns the number of the window that contains t.
func (p Plan) Window(t headgate.Instant) int64 {
	if p.Per <= 0 {
		return 0
	}
	return quotientDown(int64(t), int64(p.Per))
}

// Start returns the start of window w, or the nearest start that an Instant can represent.
func (p Plan) Start(w int64) headgate.Instant {
	if p.Per <= 0 {
		return 0
	}
	const last = 1<<63 - 1
	per := int64(p.Per)
	return headgate.Instant(min(max(w, -last/per), last/per) * per)
}

// Part returns this instance's units of window w:
//
//	floor(((w+1)R + i) / N) - floor((wR + i) / N)
//
// The parts of all instances add up to R in every window. In any run of windows, an
// instance's units differ by less than one from its even part of the run.
func (p Plan) Part(w int64) int64 { return p.count(w, 0, p.Limit) }

// Most returns the largest part of any window.
func (p Plan) Most() int64 {
	if p.Limit <= 0 || p.Instances < 1 {
		return 0
	}
	return (p.Limit-1)/int64(p.Instances) + 1
}

// Equal reports whether two plans are the same division. Equal plans have equal parts.
func (p Plan) Equal(o Plan) bool {
	return p.Limit == o.Limit && p.Per == o.Per && p.Instances == o.Instances && p.Index == o.Index
}
