package holder

import (
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease/state"
)

// seconds is the number of past seconds that count.
const seconds = 10

// Demand estimates what a holder wants of a rate:
//
//	0.9 x the mean demand of the last 10 s + the waiting units / 0.5 s
//
// In the mean, the last of n seconds has the weight n, the one before it n-1, and so on. In the first
// 10 s, n is the number of complete seconds. The factor of 0.9 keeps a few units waiting at a holder
// that has enough. So a holder does not keep capacity for a demand that has ended.
//
// The zero Demand is ready to use. It is not safe for concurrent use.
type Demand struct {
	started bool
	first   headgate.Instant   // the beginning of the first second
	second  int64              // the number of the current second, from 0
	units   [seconds + 1]int64 // by second, modulo its length
}

// Add counts units that were requested at now. Units below 1 do not count.
func (d *Demand) Add(now headgate.Instant, units int64) {
	d.advance(now)
	if units > 0 {
		at := &d.units[d.second%(seconds+1)]
		*at = min(*at+min(units, state.MaxAmount), state.MaxAmount)
	}
}

// Wants returns the estimate at now, in thousandths of a unit per second: 0 to state.MaxAmount.
func (d *Demand) Wants(now headgate.Instant, waiting int64) int64 {
	d.advance(now)
	n := min(d.second, seconds)
	var sum uint64 // below 2^40 * 55 * 900
	for i := range n {
		sum += uint64(d.units[(d.second-1-i)%(seconds+1)]) * uint64(n-i)
	}
	var mean uint64
	if n > 0 {
		mean = 900 * sum / uint64(n*(n+1)/2)
	}
	over, late := bits.Mul64(uint64(max(waiting, 0)), 2000)
	if over > 0 || late > state.MaxAmount {
		return state.MaxAmount
	}
	return int64(min(mean+late, state.MaxAmount))
}

// Idle reports whether no unit was requested in the seconds that count.
func (d *Demand) Idle(now headgate.Instant) bool {
	d.advance(now)
	return d.units == [seconds + 1]int64{}
}

// advance moves to the second of now. Time that goes back counts in the current second.
func (d *Demand) advance(now headgate.Instant) {
	if !d.started {
		d.started, d.first = true, now
		return
	}
	second := max(int64(now.Sub(d.first)/time.Second), d.second)
	if second-d.second > seconds {
		d.units = [seconds + 1]int64{}
		d.second = second
		return
	}
	for d.second < second {
		d.second++
		d.units[d.second%(seconds+1)] = 0
	}
}
