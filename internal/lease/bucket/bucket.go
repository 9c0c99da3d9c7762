package bucket

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
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
	// Until the bucket is full, the units of each Take have a place in a line that ends at moved + missing(). Those below moved have
	// refilled, or others have returned. The return of the last Take shortens the line.
	moved amount
	full  uint64 // counts how often the bucket was full
}

// receipt is what a Take has taken. The zero receipt has no units.
type receipt struct {
	units int64
	end   amount // of its line, after the Take
	full  uint64
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
	b.resize(min(max(burst, 1), headgate.MaxUnits), b.rate)
}

// Set sets the rate from now on, in thousandths of a unit a second, until a time at which it becomes 0.
func (b *Bucket) Set(now headgate.Instant, rate int64, until headgate.Instant) {
	b.start(now, 1)
	b.advance(now)
	b.until = until
	b.resize(b.burst, min(max(rate, 0), state.MaxAmount))
}

// resize changes the size. A smaller bucket misses less: this is as if units had refilled. The units that a larger bucket misses come
// after those of earlier Takes.
func (b *Bucket) resize(burst, rate int64) {
	former := b.size()
	b.burst, b.rate = burst, rate
	if size := b.size(); size.less(former) {
		b.moved = b.moved.add(former.sub(size))
	}
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
		b.fill(filled(b.rate, to.Sub(b.at), 4*headgate.MaxUnits))
	}
	b.at = max(b.at, now)
}

// fill adds units, up to a full bucket.
func (b *Bucket) fill(units amount) {
	b.has, b.moved = b.has.add(units), b.moved.add(units)
	b.clip()
}

// clip limits the units to the size. Takes before the bucket was full return nothing: all their units have refilled.
func (b *Bucket) clip() {
	const most = 1 << 60 // So that no sum overflows. Earlier Takes return nothing, which is safe.
	if size := b.size(); !b.has.less(size) {
		b.has, b.moved, b.full = size, amount{}, b.full+1
	} else if b.moved.whole > most {
		b.moved, b.full = amount{}, b.full+1
	}
}

// missing returns the units that the bucket has less than a full one.
func (b *Bucket) missing() amount { return b.size().sub(b.has) }

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

// receipt returns that of a Take, directly after it.
func (b *Bucket) receipt(cost int64) receipt {
	return receipt{cost, b.moved.add(b.missing()), b.full}
}

// giveBack gives back the units of a Take that have not refilled meanwhile. Each receipt may be given back once. If later Takes were
// given back before earlier ones, and others remain, the earlier ones may return less: the line has one beginning for all.
func (b *Bucket) giveBack(now headgate.Instant, r receipt) {
	b.advance(now)
	owed := r.end.sub(b.moved)
	if r.full != b.full || owed.whole < 0 {
		return
	}
	last := owed == b.missing()
	if all := (amount{r.units, 0}); all.less(owed) {
		owed = all
	}
	b.fill(owed)
	if last && b.missing() != (amount{}) {
		b.moved = b.moved.sub(owed) // As if the Take had never been made.
	}
}

// Return gives units back, whether they have refilled meanwhile or not. The bucket gets at most full. Taken.Return returns only units
// that have not.
func (b *Bucket) Return(now headgate.Instant, units int64) {
	b.start(now, 1)
	b.advance(now)
	b.fill(amount{min(max(units, 0), headgate.MaxUnits), 0})
}

// Has returns the units that may be spent at once, rounded down.
func (b *Bucket) Has(now headgate.Instant) int64 {
	b.start(now, 1)
	b.advance(now)
	return max(b.has.whole, 0)
}
