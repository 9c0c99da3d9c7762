package redis

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// Bounds of the limits that fit. Lua counts in floating-point numbers, which are
// exact for whole ones below 2^53.
const (
	// maxProduct bounds units x den, the greatest product of the scripts, so that
	// the sum of two of them is still exact.
	maxProduct = 1 << 52
	// maxLogCount bounds the units of one log. A decision that finds all but one of
	// its entries expired reads them all, at 0.3 µs each, and the server does nothing
	// else meanwhile: 10 ms here.
	maxLogCount = 1 << 15
)

// plan is a Policy made ready for the scripts, and for putting their answers into words.
type plan struct {
	policy headgate.Policy
	room   int64 // Burst for a bucket, Count for a log.

	// The emission interval of a bucket is num/den microseconds in lowest terms.
	num      uint64
	den      int64
	interval span
	refill   span
	maxWait  int64 // microseconds
	// most is the greatest number of intervals that a bucket's time lies ahead.
	most int64

	// packed is the limit as the scripts read it.
	packed string
}

// compile checks a policy and renders it. The error says which limit would fit.
func compile(policy headgate.Policy) (*plan, error) {
	if _, err := limit.Compile(policy); err != nil {
		return nil, err
	}
	p := &plan{policy: policy, room: limit.Room(policy), den: 1, maxWait: int64(policy.MaxWait / time.Microsecond)}
	switch policy.Algorithm {
	case headgate.TokenBucket:
		if !p.derive() {
			return nil, doesNotFit(policy)
		}
		p.packed = pack(byte(policy.Algorithm), p.interval.us, p.interval.part, p.den, p.refill.us, p.refill.part, p.maxWait, p.most)
	case headgate.SlidingLog:
		if p.room > maxLogCount {
			return nil, &limit.PolicyError{
				Field: "count", Problem: fmt.Sprintf("%d is too long a log for Redis", p.room),
				Fix: fmt.Sprintf("use at most %d, or token_bucket", maxLogCount),
			}
		}
		// Decisions are at whole microseconds, so a part of one more makes no difference.
		per := int64((policy.Limit.Per + time.Microsecond - 1) / time.Microsecond)
		counts := int64(0)
		if policy.CountRejected {
			counts = 1
		}
		p.packed = pack(byte(policy.Algorithm), p.room, per, counts)
	default:
		return nil, notBuilt(policy.Algorithm)
	}
	return p, nil
}

func notBuilt(a headgate.Algorithm) error {
	instead := "use sliding_log (exact) or token_bucket"
	if a == headgate.LeakyBucket {
		instead = "use token_bucket, which admits the same and books departures with Book"
	} else if a == headgate.Ban {
		instead = "leave the ban out"
	}
	return &limit.PolicyError{
		Field: "algorithm", Problem: a.String() + " is not built yet for Redis",
		Fix: instead + ", or use the memory store",
	}
}

// derive computes the constants of a bucket, and reports whether the scripts can
// count them exactly: no product goes beyond maxProduct. Times do not: limit bounds
// a refill at 50 years, and now with two of them stays below 2^53 until 2150.
func (p *plan) derive() bool {
	l := p.policy.Limit
	if l.Count == 0 {
		return true
	}
	per, count := uint64(l.Per), uint64(l.Count)*uint64(time.Microsecond)
	g := gcd(per, count)
	p.num = per / g
	if count/g > maxProduct {
		return false
	}
	p.den = int64(count / g)
	p.interval = span{int64(p.num / uint64(p.den)), int64(p.num % uint64(p.den))}
	p.most = p.unitsIn(p.maxWait) + 1 + p.room
	if p.most > maxProduct/p.den {
		return false
	}
	p.refill = p.spanOf(p.room)
	return true
}

// unitsIn gives the whole intervals within us microseconds, or more than fit.
func (p *plan) unitsIn(us int64) int64 {
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

// pack renders a byte and numbers as Lua's struct.unpack reads them.
func pack(kind byte, numbers ...int64) string { return string([]byte{kind}) + packed(numbers...) }

// packed renders numbers as doubles, which are exact: all are below 2^53.
func packed(numbers ...int64) string {
	b := make([]byte, 0, 8*len(numbers))
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
	}
	return string(b)
}
