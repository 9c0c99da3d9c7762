package simulate

import (
	"math"
	"slices"

	"github.com/headgate/headgate"
)

// Estimate says how far the count of an algorithm is from the exact count of the last period. Nothing is refused, and each arrival
// counts in its own estimate.
type Estimate struct {
	Algorithm  string  `help:"The algorithm that counts." json:"algorithm"`
	SubWindows int64   `help:"N of sliding_window." json:"sub_windows,omitempty"`
	Mean       float64 `help:"The mean of |estimate - exact| / exact over all arrivals." json:"mean"`
	P99        float64 `help:"The 99th percentile of the same." json:"p99"`

	played bool // at least one request was counted
}

// Units of an estimate. A request costs as much as estimateCost, so that the whole units of a decision have fractions of a request.
const (
	estimateCost  = 10_000
	estimateCount = headgate.MaxUnits / 2
)

// gauge follows the estimates of a run that refuses nothing.
type gauge struct {
	per    int64
	exact  []window // by key
	errors errorSum
	curve  *curve
}

func (*gauge) arrived(*call, headgate.Instant) {}

func (g *gauge) decided(c *call, now headgate.Instant) {
	w := &g.exact[c.key]
	w.at(now, g.per)
	w.add(now, 1)
	estimate := float64(estimateCount-c.Answer.Results[0].Decision.Remaining) / estimateCost
	exact := float64(w.units)
	g.errors.add(math.Abs(estimate-exact) / exact)
	if g.curve != nil && c.key == 0 {
		g.curve.add(now, exact, estimate)
	}
}

// errorSum has the mean and the percentiles of relative errors, in a fixed amount of memory: errors are counted by steps of 0.1 %.
type errorSum struct {
	sum   float64
	n     int64
	steps []int64
}

const (
	stepsOfOne = 1000 // An error of 1 has so many steps.
	mostSteps  = 1 << 16
)

func (s *errorSum) add(part float64) {
	s.sum += part
	s.n++
	step := min(int(part*stepsOfOne), mostSteps-1)
	if step >= len(s.steps) {
		s.steps = slices.Grow(s.steps, step+1-len(s.steps))[:step+1]
	}
	s.steps[step]++
}

// mean returns the mean; 0 without errors.
func (s *errorSum) mean() float64 { return s.sum / float64(max(s.n, 1)) }

// percentile returns the end of the step in which the percentile is.
func (s *errorSum) percentile(part float64) float64 {
	left := int64(math.Ceil(part * float64(s.n)))
	for step, n := range s.steps {
		if left -= n; left <= 0 {
			return float64(step+1) / stepsOfOne
		}
	}
	return 0
}
