package contest

import (
	"math"
	"slices"
)

// Interval is a median with the interval that it is known to.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Confidence is that of the interval. It is at least 0.95 from six values on.
	Confidence float64 `json:"confidence"`
}

// confident is what an interval must be to judge a bar.
const confident = 0.95

// MedianInterval gives the median of the values and the narrowest interval of
// order statistics that holds the true median with a confidence of 95 %. It
// assumes nothing of how the values are distributed: each lies above the true
// median with probability 1/2, so the count of those that do is binomial.
func MedianInterval(values []float64) Interval {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return Interval{}
	}
	k, confidence := 0, confidenceOf(n, 0)
	for k+1 < (n+1)/2 && confidenceOf(n, k+1) >= confident {
		k++
		confidence = confidenceOf(n, k)
	}
	return Interval{Median: Median(sorted), Low: sorted[k], High: sorted[n-1-k], Confidence: confidence}
}

// confidenceOf is that of the interval which leaves k of n values out on each side.
func confidenceOf(n, k int) float64 {
	outside := 0.0
	for i := 0; i <= k; i++ {
		outside += math.Exp(logChoose(n, i) - float64(n)*math.Ln2)
	}
	return max(0, 1-2*outside)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// Verdict says how a ratio stands to its bar.
type Verdict string

// The verdicts. A bar is missed only when the whole interval is beyond it.
const (
	NoBar  Verdict = ""
	Met    Verdict = "met"
	Open   Verdict = "open"
	Missed Verdict = "MISSED"
	// TooFew says that there are too few rounds for an interval.
	TooFew Verdict = "too few rounds"
)

// Judge compares the interval with the bar; a bar of 0 is none.
func Judge(i Interval, bar float64) Verdict {
	switch {
	case bar == 0:
		return NoBar
	case i.Confidence < confident:
		return TooFew
	case i.Low > bar:
		return Missed
	case i.High <= bar:
		return Met
	default:
		return Open
	}
}
