package schedule

import (
	"math"
	"math/big"
	"math/rand/v2"
	"time"
)

// This file has the twins of the package's functions. They use the definitions directly,
// with big integers and window by window.

// twinShare returns floor((wR + i) / N).
func twinShare(limit, w, index, instances int64) *big.Int {
	n := new(big.Int).Mul(big.NewInt(w), big.NewInt(limit))
	n.Add(n, big.NewInt(index))
	return n.Div(n, big.NewInt(instances)) // big.Int.Div rounds down for a positive divisor
}

// twinSum returns the units of the windows from to to-1 of an even plan.
func twinSum(p Plan, from, to int64) *big.Int {
	if to <= from {
		return new(big.Int)
	}
	limit, index, n := p.Limit, int64(p.Index), int64(p.Instances)
	return new(big.Int).Sub(twinShare(limit, to, index, n), twinShare(limit, from, index, n))
}

// fits returns n, or the largest int64 if n is larger.
func fits(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	return math.MaxInt64
}

// twinAfter counts window by window, up to the number most.
func twinAfter(part func(w int64) int64, from, need, most int64) (w, before int64, ok bool) {
	for w = from; w < from+most; w++ {
		units := part(w)
		if before+units >= need {
			return w, before, true
		}
		before += units
	}
	return 0, 0, false
}

// script is a source of random numbers.
type script interface{ Int64N(n int64) int64 }

// oneOf draws one of the given numbers.
func oneOf(r script, choices ...int64) int64 { return choices[r.Int64N(int64(len(choices)))] }

// drawEven draws an even plan, with small numbers, which cause ties, and with extreme ones.
func drawEven(r script) Plan {
	n := oneOf(r, 1, 2, 96, 1+r.Int64N(10), 1+r.Int64N(1000), 1+r.Int64N(MaxInstances), MaxInstances)
	limit := oneOf(r, 0, 1, 10, 95, 96, 97, n, r.Int64N(20), r.Int64N(3*n), n*r.Int64N(5), r.Int64N(MaxLimit), MaxLimit)
	per := oneOf(r, int64(time.Second), int64(MinPer), int64(MaxPer), int64(MinPer)+r.Int64N(int64(time.Minute)))
	p, err := Even(limit, time.Duration(per), int(n), int(oneOf(r, 0, n-1, r.Int64N(n))))
	if err != nil {
		panic(err)
	}
	return p
}

// drawWindow draws a window number near 1970, near the present, or near the extremes.
func drawWindow(r script) int64 {
	return oneOf(r, r.Int64N(20)-10, 1_800_000_000+r.Int64N(100), r.Int64N(math.MaxInt64), -r.Int64N(math.MaxInt64),
		math.MinInt64, math.MinInt64+r.Int64N(9), math.MaxInt64-r.Int64N(9))
}

// forInputs checks a property with random inputs, and stops after the first failure.
func forInputs(seed uint64, property func(n int, r *rand.Rand) bool) {
	r := rand.New(rand.NewPCG(seed, 1))
	for n := range inputs() {
		if !property(n, r) {
			return
		}
	}
}
