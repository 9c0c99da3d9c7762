package etcd

import "math"

const (
	// remembered is the number of reports that the average of a steady demand weighs:
	// about 96 s by the defaults.
	remembered = 64
	// risen and fallen bound what counts as the same demand, in square roots of the
	// average: a sample risen roots above it, or the last few samples fallen roots below
	// it, start a new average.
	risen, fallen = 8, 2.5
	// unusual is the excess of one sample, in the same unit, above which half of the
	// rest of the excess is reported at once: a backlog has grown.
	unusual = 1.5
	// negligible is the excess of an average over a whole number that is rounded off. To a
	// larger one cushion is added, up to the next whole number.
	negligible, cushion = 0.15, 0.55
	// hundredths is the number of hundredths in a unit. Demands are reported in hundredths, because
	// parts are that fine with a small limit.
	hundredths = 100
)

// estimate turns samples of an instance's demand into the reported demand.
//
// A sample counts the waiting callers. A single window of an irregular stream says little: with
// 2 calls a window on average, a seventh of the windows have none and a seventh have four or
// more. A part that follows single samples is too small when a backlog grows and too large
// otherwise. Therefore steady demand is averaged. The average includes the waiters that the
// present part leaves. So for an irregular stream, the average exceeds the mean by the headroom
// that the stream needs. For a regular stream, it equals the mean.
type estimate struct {
	samples, mean float64
	recent        float64 // an average in which the last sample has a weight of one half
}

// next returns the report after a sample, in hundredths of a unit.
func (e *estimate) next(asked int64) int64 {
	x := float64(min(max(asked, 0), maxDemand))
	spread := max(1, math.Sqrt(e.mean))
	e.recent += (x - e.recent) / 2
	switch {
	case e.samples == 0, x > e.mean+risen*spread:
		e.mean, e.recent, e.samples = x, x, 1
	case e.recent < e.mean-fallen*spread:
		e.mean, e.samples = e.recent, 2
	default:
		// The weight falls from 2/3 to 1/remembered. In a young average later samples weigh
		// more: the first ones count the backlog from before there was a plan.
		e.samples = min(e.samples+1, 2*remembered-1)
		e.mean += (x - e.mean) * 2 / (e.samples + 1)
	}
	backlog := max(0, x-e.mean-unusual*spread) / 2
	return int64(math.Ceil(hundredths * (e.rounded() + backlog)))
}

// rounded returns the average, and more if it is no whole number: a part as large as the
// average leaves an irregular stream no way to shorten its queue.
func (e *estimate) rounded() float64 {
	whole, rest := math.Modf(max(0, e.mean))
	if rest <= negligible {
		return whole
	}
	return min(whole+1, e.mean+cushion)
}
