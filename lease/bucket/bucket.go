package bucket

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease/state"
)

// Bucket is the token bucket of one lease. It reads no clock. It is not safe for concurrent use. The zero Bucket
// has a rate of 0 and the burst 1.
type Bucket struct {
	rate    int64 // thousandths of a unit a second
	burst   int64 // the least size, in units
	has     amount
	at      headgate.Instant // the time of has
	until   headgate.Instant // the rate is 0 from then on
	started bool
}

// start makes the zero Bucket one with a burst.
func (b *Bucket) start(now headgate.Instant, burst int64) {
	if !b.started {
		b.started, b.at, b.burst = true, now, max(burst, 1)
		b.has.whole = b.burst
	}
}

// Burst sets the least size of the bucket, in units. A bucket that was not used yet begins with so many units. Others
// keep what they have.
func (b *Bucket) Burst(now headgate.Instant, burst int64) {
	b.start(now, burst)
	b.advance(now)
	b.burst = min(max(burst, 1), headgate.MaxUnits)
	b.clip()
}

// Set sets the rate from now on, in thousandths of a unit a second, until a time at which it becomes 0.
func (b *Bucket) Set(now headgate.Instant, rate int64, until headgate.Instant) {
	b.start(now, 1)
	b.advance(now)
	b.rate, b.until = min(max(rate, 0), state.MaxAmount), until
	b.clip()
}

// Rate returns the rate at now.
func (b *Bucket) Rate(now headgate.Instant) int64 {
	if now >= b.until {
		return 0
	}
	return b.rate
}

// Size returns the units of a full bucket, rounded down.
func (b *Bucket) Size() int64 { return b.size().whole }

func (b *Bucket) size() amount {
	const second = 1000 * 10 // thousandths of a unit a second in a tenth of a second
	size := amount{b.rate / second, uint64(b.rate%second) * (parts / second)}
	if least := (amount{b.burst, 0}); size.less(least) {
		return least
	}
	return size
}

// advance fills the bucket up to now. A clock that steps back fills nothing.
func (b *Bucket) advance(now headgate.Instant) {
	if to := min(now, b.until); to > b.at && b.rate > 0 {
		// Enough for the largest debt: MaxUnits, and a full bucket.
		b.has = b.has.add(filled(b.rate, to.Sub(b.at), 4*headgate.MaxUnits))
		b.clip()
	}
	b.at = max(b.at, now)
}

func (b *Bucket) clip() {
	if size := b.size(); size.less(b.has) {
		b.has = size
	}
}

// need returns what the bucket must have for a cost.
func (b *Bucket) need(cost int64) amount {
	if size := b.size(); size.less(amount{cost, 0}) {
		return size
	}
	return amount{cost, 0}
}

// Take takes a cost, of 0 to headgate.MaxUnits units, if the bucket has enough.
func (b *Bucket) Take(now headgate.Instant, cost int64) bool {
	b.start(now, 1)
	b.advance(now)
	if b.has.less(b.need(cost)) {
		return false
	}
	b.has.whole -= cost
	return true
}

// Wait returns the time until a cost may pass at the present rate, rounded up.
func (b *Bucket) Wait(now headgate.Instant, cost int64) time.Duration {
	b.start(now, 1)
	b.advance(now)
	return b.need(cost).sub(b.has).at(b.Rate(now))
}

// Full returns the time until the bucket is full.
func (b *Bucket) Full(now headgate.Instant) time.Duration {
	b.start(now, 1)
	b.advance(now)
	return b.size().sub(b.has).at(b.Rate(now))
}

// Return gives units back. The bucket gets at most full.
func (b *Bucket) Return(now headgate.Instant, units int64) {
	b.start(now, 1)
	b.advance(now)
	b.has.whole += min(max(units, 0), headgate.MaxUnits)
	b.clip()
}

// Has returns the units that may be spent at once, rounded down.
func (b *Bucket) Has(now headgate.Instant) int64 {
	b.start(now, 1)
	b.advance(now)
	return max(b.has.whole, 0)
}
