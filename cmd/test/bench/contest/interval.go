package contest

import (
	"math"
	"slices"
)

// Interval is a median with its confidence interval.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Confidence is the probability that the interval contains the true median. With six
	// or more values, Confidence is at least 0.95.
	Confidence float64 `json:"confidence"`
}

// confident is the smallest confidence with which an interval is judged.
const confident = 0.95

// MedianInterval returns the median of the values, and the narrowest interval of order
// statistics that contains the true median with a confidence of 95 %. The calculation
// assumes nothing about the distribution. Each value is above the true median with
// probability 1/2, so the number of values above the true median is binomial.
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

// confidenceOf returns the confidence of the interval that excludes k of n values on each
// side.
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

// Verdict is the result of comparing an interval with its bar.
type Verdict string

// The verdicts. A bar is missed only when the whole interval is above the bar, and met
// only when the whole interval is within the bar.
const (
	NoBar  Verdict = ""
	Met    Verdict = "met"
	Open   Verdict = "open"
	Missed Verdict = "MISSED"
	// TooFew means that the rounds are too few for a confidence of 95 %.
	TooFew Verdict = "too few rounds"
)

// Judge compares the interval with the bar. A bar of 0 means that there is no bar.
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
