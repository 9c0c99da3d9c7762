package script

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// Plan is a Policy in the form for encoding calls and decoding replies. A Plan is immutable and safe
// for concurrent use. Its times are in whole microseconds.
type Plan struct {
	policy headgate.Policy
	family limit.Family
	room   int64 // Burst for a bucket, Count for the others
	per    int64 // microseconds, rounded up
	counts bool  // CountRejected
	owe    int64 // the largest debt that the scripts count exactly

	// The emission interval of a bucket is num/den microseconds. num is the period and den the count,
	// not in lowest terms. So the scripts convert a bucket between policies with the same period
	// without rounding.
	num      uint64
	den      int64
	interval span
	refill   span
	horizon  span  // the bound of a bucket's time ahead of now: refill, plus MaxWait for token_bucket, or owing
	owing    span  // refill, plus the time of the largest debt
	maxWait  int64 // microseconds
	// most is an upper bound of a bucket's time ahead of now, in intervals.
	most int64

	// ceiling is the largest value of a sliding window's counter.
	ceiling int64
	banFor  int64 // microseconds

	// blocks marks a bucket with a limit of 0, which has no state.
	blocks bool
	// width is the number of doubles in the reply for an Op.
	width int
	// packed is the policy in the encoding of the scripts.
	packed string
}

// Family gives the plan's family.
func (p *Plan) Family() limit.Family { return p.family }

// Policy gives the policy that the plan was compiled from.
func (p *Plan) Policy() headgate.Policy { return p.policy }

// Compile checks a policy and encodes it for the scripts. An error is a *limit.PolicyError, and names
// a policy that fits. The Plan does not keep Policy.Named.
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
	if policy.Limit.Count > 0 {
		p.owe = min(policy.Overdraft, limit.LargestDebt(policy))
	}
	if err := p.fit(); err != nil {
		return nil, err
	}
	p.render()
	return p, nil
}

// short reports whether groups of one Take of the policy can be runs. Runs need a bucket with an
// interval of whole microseconds.
func (p *Plan) short() bool { return p.isBucket() && p.interval.part == 0 && !p.blocks }

// calendar reports whether Ops of the plan have edges.
func (p *Plan) calendar() bool { return p.policy.Limit.Calendar != headgate.NoCalendar }

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
