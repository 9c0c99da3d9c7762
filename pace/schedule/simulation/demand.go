package simulation

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Between lets n callers a window come evenly in the part of it from start to end,
// which are from 0 to 1.
func Between(n int, start, end float64) Demand {
	return func(_ *rand.Rand, _ int, per time.Duration) []time.Duration {
		times := make([]time.Duration, n)
		for k := range times {
			times[k] = time.Duration(float64(per) * (start + (end-start)*float64(k)/float64(n)))
		}
		return times
	}
}

// AtStart lets n callers come at the start of each window.
func AtStart(n int) Demand { return Between(n, 0, 0) }

// Evenly lets n callers a window come at equal distances.
func Evenly(n int) Demand { return Between(n, 0, 1) }

// Poisson lets callers come as independent ones do, n a window on average.
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

// InTurn lets one demand follow another; the last goes on to the end.
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

// Alternating lets demands take turns, one a window.
func Alternating(demands ...Demand) Demand {
	return func(r *rand.Rand, window int, per time.Duration) []time.Duration {
		return demands[window%len(demands)](r, window/len(demands), per)
	}
}

// Both lets the callers of two demands come.
func Both(a, b Demand) Demand {
	return func(r *rand.Rand, window int, per time.Duration) []time.Duration {
		times := slices.Concat(a(r, window, per), b(r, window, per))
		slices.Sort(times)
		return times
	}
}
