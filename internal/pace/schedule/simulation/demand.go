package simulation

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Between has n callers a window. They arrive evenly between start and end, which are
// fractions of the window.
func Between(n int, start, end float64) Demand {
	return func(_ *rand.Rand, _ int, per time.Duration) []time.Duration {
		times := make([]time.Duration, n)
		for k := range times {
			times[k] = time.Duration(float64(per) * (start + (end-start)*float64(k)/float64(n)))
		}
		return times
	}
}

// AtStart has n callers at the start of each window.
func AtStart(n int) Demand { return Between(n, 0, 0) }

// Evenly has n callers a window, at equal distances.
func Evenly(n int) Demand { return Between(n, 0, 1) }

// Poisson has independent callers with an average of n a window.
func Poisson(n int) Demand {
	return func(r *rand.Rand, _ int, per time.Duration) []time.Duration {
		var times []time.Duration
		for at := 0.0; ; {
			if at += r.ExpFloat64() / float64(n); at >= 1 {
				return times
			}
			times = append(times, time.Duration(at*float64(per)))
		}
	}
}

// Phase is a demand for a number of windows.
type Phase struct {
	Windows int
	Demand  Demand
}

// InTurn has the demands of the phases in order. The last demand continues to the end.
func InTurn(phases ...Phase) Demand {
	return func(r *rand.Rand, window int, per time.Duration) []time.Duration {
		for _, p := range phases[:len(phases)-1] {
			if window < p.Windows {
				return p.Demand(r, window, per)
			}
			window -= p.Windows
		}
		return phases[len(phases)-1].Demand(r, window, per)
	}
}

// Alternating has one of the demands in each window, in rotation.
func Alternating(demands ...Demand) Demand {
	return func(r *rand.Rand, window int, per time.Duration) []time.Duration {
		return demands[window%len(demands)](r, window/len(demands), per)
	}
}

// Both has the callers of the two demands together.
func Both(a, b Demand) Demand {
	return func(r *rand.Rand, window int, per time.Duration) []time.Duration {
		times := slices.Concat(a(r, window, per), b(r, window, per))
		slices.Sort(times)
		return times
	}
}
