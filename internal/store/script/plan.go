package script

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// Plan is a Policy, prepared for the scripts and for the decoding of their replies. A Plan is
// immutable and may be shared. Its times are whole microseconds.
type Plan struct {
	policy headgate.Policy
	family limit.Family
	room   int64 // Burst for a bucket, Count for the others
	per    int64 // microseconds, rounded up
	counts bool  // CountRejected

	// The emission interval of a bucket is num/den microseconds: the period and the count, not in
	// lowest terms. Two policies of one period thus convert their counts without rounding.
	num      uint64
	den      int64
	interval span
	refill   span
	horizon  span  // the bound of bookings ahead: refill, and MaxWait for tokens
	maxWait  int64 // microseconds
	// most is an upper bound of the intervals that a bucket's time is ahead.
	most int64

	// ceiling is the largest value of a counter of a sliding window.
	ceiling int64
	banFor  int64 // microseconds

	// blocks marks a bucket with a limit of 0, which has no state.
	blocks bool
	// width is how many numbers lua/decide.lua gives for an Op.
	width int
	// packed is the limit in the form that the scripts read.
	packed string
}

// Family gives the plan's family.
func (p *Plan) Family() limit.Family { return p.family }

// Policy gives the policy that the plan was compiled from.
func (p *Plan) Policy() headgate.Policy { return p.policy }

// Compile checks a policy and encodes it for the scripts. The error is a *limit.PolicyError, and
// names a policy that fits. The Plan does not keep Policy.Named.
func Compile(policy headgate.Policy) (*Plan, error) {
	policy.Named = false
	if _, err := limit.Compile(policy); err != nil {
		return nil, err
	}
	p := &Plan{
		policy: policy, family: limit.FamilyOf(policy), room: limit.Room(policy), counts: policy.CountRejected, den: 1,
		per:     microsUp(policy.Limit.Per),
		maxWait: int64(policy.MaxWait / time.Microsecond), banFor: int64(policy.BanFor / time.Microsecond),
	}
	if err := p.fit(); err != nil {
		return nil, err
	}
	p.render()
	return p, nil
}

// kindOfNothing is the scripts' code for a bucket with a limit of 0.
const kindOfNothing = 6

// render encodes the plan for the policy functions of the scripts.
func (p *Plan) render() {
	kind := byte(p.policy.Algorithm)
	switch p.policy.Algorithm {
	case headgate.TokenBucket, headgate.LeakyBucket:
		p.width = 3
		if p.interval.part == 0 {
			p.width = 2
		}
		if p.room == 0 {
			kind, p.blocks, p.width = kindOfNothing, true, 0
		}
		p.packed = pack(kind, p.interval.us, p.interval.part, p.den, p.refill.us, p.refill.part,
			p.horizon.us, p.horizon.part, p.maxWait, p.room, p.most)
	case headgate.FixedWindow:
		p.width = 3
		p.packed = pack(kind, p.room, p.per) + flag(p.counts)
	case headgate.SlidingLog:
		p.width = 5
		p.packed = pack(kind, p.room, p.per) + flag(p.counts)
	case headgate.SlidingWindow:
		p.width = 5
		p.packed = pack(kind, p.room, p.per, int64(p.policy.SubWindows), p.ceiling) + flag(p.counts)
	default:
		p.width = 3
		p.packed = pack(kind, p.room, p.per, p.banFor)
	}
}

// short reports whether groups of one Take under the plan can be runs: buckets with an interval of
// whole microseconds.
func (p *Plan) short() bool { return p.isBucket() && p.interval.part == 0 && !p.blocks }

func (p *Plan) isBucket() bool { return p.policy.Algorithm <= headgate.LeakyBucket }

// needsList reports whether a log of the plan can become too long for its state.
func (p *Plan) needsList() bool {
	return p.policy.Algorithm == headgate.SlidingLog && p.room > inlineUnits
}

// microsUp rounds d up to whole microseconds.
func microsUp(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// pack encodes a byte and numbers for Lua's struct.unpack.
func pack(kind byte, numbers ...int64) string { return string([]byte{kind}) + packed(numbers...) }

// packed encodes numbers as doubles. All numbers are below 2^53, so they are exact.
func packed(numbers ...int64) string {
	b := make([]byte, 0, 8*len(numbers))
	for _, n := range numbers {
		b = appendNumber(b, n)
	}
	return string(b)
}

func appendNumber(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
}

func flag(set bool) string {
	if set {
		return "\x01"
	}
	return "\x00"
}
