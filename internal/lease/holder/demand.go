package holder

import (
	"math"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// Demand estimates what a holder wants of a rate:
//
//	0.9 x the mean demand of the last 10 s, but at most 0.9 x (√n + 1.5)², + the waiting units / 0.5 s
//
// In the mean, the last of k seconds has the weight k, the one before it k-1, and so on. In the first
// 10 s, k is the number of complete seconds. The factor of 0.9 keeps a few units waiting at a holder
// that has enough. So a holder does not keep capacity for a demand that has ended.
//
// n is the demand of the last ten complete tenths of a second. The rate of random calls is above
// (√n + 1.5)² once in 700 times: this is three standard deviations. So the bound has an effect when the
// demand has fallen, within a second. Without it, a holder keeps a share for 10 s.
//
// The zero Demand is ready to use. It is not safe for concurrent use.
type Demand struct {
	started         bool
	first           headgate.Instant // the beginning of the first period
	seconds, tenths periods
}

// past is the number of complete periods that count.
const past = 10

// periods counts units by period.
type periods struct {
	current int64           // the number of the current period, from 0
	units   [past + 1]int64 // modulo its length
}

// Add counts units that were requested at now. Units below 1 do not count.
func (d *Demand) Add(now headgate.Instant, units int64) {
	d.advance(now)
	if units > 0 {
		d.seconds.add(units)
		d.tenths.add(units)
	}
}

// Wants returns the estimate at now, in thousandths of a unit per second: 0 to state.MaxAmount.
func (d *Demand) Wants(now headgate.Instant, waiting int64) int64 {
	d.advance(now)
	n := min(d.seconds.current, past)
	var sum, recent uint64 // below 2^40 * 55 * 900
	for i := range n {
		sum += uint64(d.seconds.before(i)) * uint64(n-i)
	}
	for i := range int64(past) {
		recent += uint64(d.tenths.before(i))
	}
	var mean uint64
	if n > 0 {
		mean = 900 * sum / uint64(n*(n+1)/2)
	}
	over, late := bits.Mul64(uint64(max(waiting, 0)), 2000)
	if over > 0 || late > state.MaxAmount {
		return state.MaxAmount
	}
	return int64(min(min(mean, most(recent))+late, state.MaxAmount))
}

// most returns 0.9 x (√n + 1.5)², in thousandths.
func most(n uint64) uint64 { return 900*n + uint64(2700*math.Sqrt(float64(n))) + 2025 }

// Idle reports whether no unit was requested in the seconds that count.
func (d *Demand) Idle(now headgate.Instant) bool {
	d.advance(now)
	return d.seconds.units == [past + 1]int64{}
}

// advance moves to the periods of now. Time that goes back counts in the current ones.
func (d *Demand) advance(now headgate.Instant) {
	if !d.started {
		d.started, d.first = true, now
		return
	}
	since := now.Sub(d.first)
	d.seconds.advance(int64(since / time.Second))
	d.tenths.advance(int64(since / (time.Second / 10)))
}

func (p *periods) add(units int64) {
	at := &p.units[p.current%(past+1)]
	*at = min(*at+min(units, state.MaxAmount), state.MaxAmount)
}

// before returns the units of a complete period: 0 is the last one.
func (p *periods) before(i int64) int64 { return p.units[(p.current+past-i)%(past+1)] }

// advance begins periods up to the one with a number.
func (p *periods) advance(to int64) {
	if to-p.current > past {
		p.units, p.current = [past + 1]int64{}, to
		return
	}
	for p.current < to {
		p.current++
		p.units[p.current%(past+1)] = 0
	}
}
