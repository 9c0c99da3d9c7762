package script

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// Bounds of the policies that fit. Lua counts in floating-point numbers, which are
// exact for whole ones below 2^53.
const (
	// maxProduct bounds units x den, the greatest product of the scripts, so that
	// the sum of two of them is still exact.
	maxProduct = 1 << 52
	// maxDivisor bounds what the scripts' long division divides by (lua/number.lua).
	maxDivisor = 1 << 51
	// MaxLogCount bounds the units of one log. A decision that finds all but one of
	// its entries expired, or that is refused for a cost as great as the log, looks at
	// each chunk (2 ms), and one that counts under a limit that was lowered may read
	// each entry, once (11 ms), while the server does nothing else.
	MaxLogCount = 1 << 15
	// inlineUnits is the longest log that never needs its list.
	inlineUnits = 128
)

// fit derives the constants of the plan, and finds what the scripts cannot count.
func (p *Plan) fit() error {
	l := p.policy.Limit
	switch p.policy.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		if !p.derive() {
			return doesNotFit(p.policy)
		}
	case headgate.SlidingLog:
		if p.room > MaxLogCount {
			return &limit.PolicyError{
				Field: "count", Problem: fmt.Sprintf("%d is too long a log for Redis", p.room),
				Fix: fmt.Sprintf("use at most %d, or sliding_window, or token_bucket", MaxLogCount),
			}
		}
		return nil // Decisions are at whole microseconds, so a part of one more makes no difference.
	case headgate.SlidingWindow:
		if err := p.fitWindow(); err != nil {
			return err
		}
		fallthrough
	default:
		if l.Per%time.Microsecond != 0 {
			return notWhole("period", l.Per)
		}
		if p.policy.BanFor%time.Microsecond != 0 {
			return notWhole("ban_for", p.policy.BanFor)
		}
	}
	return nil
}

func notWhole(field string, d time.Duration) error {
	return &limit.PolicyError{
		Field: field, Problem: fmt.Sprintf("%s is not a whole number of microseconds, in which Redis decides", d),
		Fix: fmt.Sprintf("use %s", d.Round(time.Microsecond)),
	}
}

// fitWindow sees to it that the sum of all counters stays below 2^51.
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
	return nil
}

// derive computes the constants of a bucket, and reports whether the scripts can
// count them exactly. In lowest terms no product goes beyond maxProduct, and neither
// num nor den goes beyond what the long division takes as they are counted with. Times
// do not grow so far: limit bounds a refill at 50 years, and now with two of them stays
// below 2^53 until 2150.
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
	if p.most > maxProduct/int64(count/gcd(per, count)) {
		return false
	}
	p.refill = p.spanOf(p.room)
	p.horizon = p.refill
	if p.policy.Algorithm == headgate.TokenBucket {
		p.horizon.us += p.maxWait
	}
	return true
}

// unitsIn gives the whole intervals within us microseconds, or more than fit.
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
