package script

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Bounds of the policies that fit. Lua's numbers are floating-point numbers. Whole numbers below
// 2^53 are exact.
const (
	// maxProduct bounds units x den, the largest product of the scripts. The sum of two such products
	// is still exact.
	maxProduct = 1 << 52
	// maxDivisor bounds the divisor of the scripts' long division (lua/number.lua).
	maxDivisor = 1 << 51
	// MaxLogCount bounds the units of one log, because the server does nothing else during a
	// decision. If almost all entries have expired, or the cost is as large as the log, a decision
	// reads each chunk (2 ms). After a limit was lowered, one decision may read each entry (11 ms).
	MaxLogCount = 1 << 15
	// inlineUnits is the largest number of units for which a log never needs a list.
	inlineUnits = 128
)

func notWhole(field string, d time.Duration) error {
	return &limit.PolicyError{
		Field: field, Problem: fmt.Sprintf("%s is not a whole number of microseconds, in which Redis decides", d),
		Fix: fmt.Sprintf("use %s", d.Round(time.Microsecond)),
	}
}

// fitWindow ensures that the sum of all counters stays below 2^51.
func (p *Plan) fitWindow() error {
	n := int64(p.policy.SubWindows)
	p.ceiling = maxDivisor / (n + 1)
	switch {
	case p.room > p.ceiling:
		return &limit.PolicyError{
			Field: "count", Problem: fmt.Sprintf("%d times %d sub-windows is beyond 2^51, where scripts stop being exact", p.room, n),
			Fix: fmt.Sprintf("use at most %d, or fewer sub-windows, or token_bucket", p.ceiling),
		}
	case n > p.per:
		return &limit.PolicyError{
			Field: "sub_windows", Problem: fmt.Sprintf("%d are shorter than the microsecond in which Redis decides", n),
			Fix: fmt.Sprintf("use at most %d", p.per),
		}
	}
	p.owe = min(p.owe, p.ceiling-p.room)
	return nil
}

// derive computes the constants of a bucket, and reports whether the scripts can count the bucket
// exactly. In lowest terms, no product may exceed maxProduct, and num and den must be within the range
// of the long division. Times stay small enough: package limit bounds a refill at 50 years, and now
// plus two refills is below 2^53 until 2150.
func (p *Plan) derive() bool {
	l := p.policy.Limit
	if l.Count == 0 {
		return true
	}
	per, count := uint64(l.Per), uint64(l.Count)
	if l.Per%time.Microsecond == 0 {
		per /= uint64(time.Microsecond)
	} else {
		count *= uint64(time.Microsecond)
	}
	if per > maxDivisor || count > maxDivisor {
		return false
	}
	p.num, p.den = per, int64(count)
	p.interval = span{int64(per / count), int64(per % count)}
	p.most = p.unitsIn(p.maxWait) + 1 + p.room
	bound := maxProduct / int64(count/gcd(per, count))
	if p.most > bound {
		return false
	}
	p.owe = min(p.owe, bound-p.most)
	p.most += p.owe
	p.refill = p.spanOf(p.room)
	p.horizon = p.refill
	if p.policy.Algorithm == headgate.TokenBucket {
		p.horizon.us += p.maxWait
	}
	if p.owing = p.spanOf(p.room + p.owe); p.owing.after(p.horizon) {
		p.horizon = p.owing
	}
	return true
}

// unitsIn gives the number of whole intervals within us microseconds, at most maxProduct.
func (p *Plan) unitsIn(us int64) int64 {
	hi, lo := bits.Mul64(uint64(us), uint64(p.den))
	if hi >= p.num {
		return maxProduct
	}
	q, _ := bits.Div64(hi, lo, p.num)
	return int64(min(q, maxProduct))
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
