package limit

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
)

// Bounds of what Compile accepts. They keep every product of the arithmetic
// within 128 bits and every sum of times within an int64.
const (
	// MinPer is the shortest period.
	MinPer = time.Microsecond
	// MaxPer is the longest period: a leap year and a day.
	MaxPer = 367 * 24 * time.Hour
	// MaxRefill bounds the time in which a full Burst refills, MaxWait included:
	// now + 2 x MaxRefill stays within an Instant until the year 2162.
	MaxRefill = 50 * 365 * 24 * time.Hour
	// MaxSubWindows bounds the counters of a sliding window, and so the longest loop of a decision.
	MaxSubWindows = 256
	// MaxLogCount bounds the units of one log: its entries take 16 bytes each.
	MaxLogCount = 1 << 24
)

// Plan is a Policy made ready for arithmetic. It is immutable and may be shared.
type Plan struct {
	Policy headgate.Policy

	count     int64
	burst     int64
	per       int64 // nanoseconds
	leaky     bool
	wholeStep bool

	// The emission interval is num/den nanoseconds: Per/Count, not in lowest terms, so
	// that two policies of one period restate what they count without rounding.
	num, den uint64
	step     int64  // num/den, if that is a whole number, else 0
	inverse  uint64 // floor((2^64-1)/step)
	interval span   // num/den
	refill   span   // burst intervals: the time in which an empty bucket fills
	horizon  span   // no honest bucket is booked further ahead: refill, and MaxWait for tokens
}

// Compile checks a policy and derives its constants. The error is a *PolicyError. Who has
// named the policy is left out of the Plan.
func Compile(policy headgate.Policy) (*Plan, error) {
	policy.Named = false
	if err := validate(policy); err != nil {
		return nil, err
	}
	p := &Plan{Policy: policy, count: policy.Limit.Count, burst: Room(policy), per: int64(policy.Limit.Per)}
	p.leaky = policy.Algorithm == headgate.LeakyBucket
	if p.count == 0 {
		p.num, p.den, p.step, p.inverse = 1, 1, 1, ^uint64(0)
		return p, nil
	}
	p.num, p.den = uint64(p.per), uint64(p.count)
	p.interval = span{int64(p.num / p.den), p.num % p.den}
	if p.interval.part == 0 && p.interval.ns > 0 {
		p.step, p.inverse = p.interval.ns, ^uint64(0)/uint64(p.interval.ns)
	}
	p.wholeStep = p.step > 0 && policy.Algorithm == headgate.TokenBucket
	p.refill = p.spanOf(p.burst)
	p.horizon = p.refill
	if !p.leaky {
		p.horizon = p.refill.add(span{int64(policy.MaxWait), 0}, p.den)
	}
	return p, nil
}

// Room gives the most units that the policy admits at once: Burst for the
// buckets (Count when it is 0), Count for the windows.
func Room(policy headgate.Policy) int64 {
	if isBucket(policy.Algorithm) && policy.Limit.Burst > 0 {
		return policy.Limit.Burst
	}
	return policy.Limit.Count
}

func isBucket(a headgate.Algorithm) bool {
	return a == headgate.TokenBucket || a == headgate.LeakyBucket
}

// PolicyError says which field of a policy does not fit, why, and what would.
type PolicyError struct {
	Field   string
	Problem string
	Fix     string
}

// Error gives problem and fix in one sentence.
func (e *PolicyError) Error() string {
	return fmt.Sprintf("limit: %s %s: %s", e.Field, e.Problem, e.Fix)
}

// validate finds the first fault of a policy.
func validate(p headgate.Policy) error {
	l := p.Limit
	switch {
	case p.Algorithm > headgate.Ban:
		return &PolicyError{"algorithm", fmt.Sprintf("%d is not known", p.Algorithm), "use one of " + fmt.Sprint(headgate.Algorithms())}
	case l.Count < 0 || l.Count > headgate.MaxUnits:
		return &PolicyError{"count", fmt.Sprintf("%d is out of range", l.Count), fmt.Sprintf("use 0 to %d", int64(headgate.MaxUnits))}
	case l.Per < MinPer || l.Per > MaxPer:
		return &PolicyError{"period", fmt.Sprintf("%s is out of range", l.Per), fmt.Sprintf("use %s to %dd", MinPer, MaxPer/(24*time.Hour))}
	case p.Algorithm != headgate.Ban && p.BanFor != 0:
		return &PolicyError{"ban_for", "is not used by " + p.Algorithm.String(), "leave it out, or use ban"}
	case p.Hold != 0 || p.Batch != 0:
		return &PolicyError{"prefetch", "is not done by this store itself", "put store/prefetch before a shared store, or leave it out"}
	}
	switch {
	case isBucket(p.Algorithm):
		return validateBucket(p)
	case p.Algorithm == headgate.Ban:
		return validateBan(p)
	default:
		return validateWindow(p)
	}
}

func validateBucket(p headgate.Policy) error {
	l := p.Limit
	switch {
	case p.SubWindows != 0:
		return &PolicyError{"sub_windows", "is not used by " + p.Algorithm.String(), "leave it out, or use sliding_window"}
	case p.CountRejected:
		return &PolicyError{"count_rejected", "is not used by " + p.Algorithm.String(), "leave it out, or use a window algorithm"}
	case l.Burst < 0 || l.Burst > headgate.MaxUnits:
		return &PolicyError{"burst", fmt.Sprintf("%d is out of range", l.Burst), fmt.Sprintf("use 1 to %d", int64(headgate.MaxUnits))}
	case l.Count == 0 && l.Burst > 0:
		return &PolicyError{"burst", "is above 0 for a limit of 0, which admits nothing", "leave it out"}
	case p.MaxWait < 0 || p.MaxWait > MaxPer:
		return &PolicyError{"max_wait", fmt.Sprintf("%s is out of range", p.MaxWait), fmt.Sprintf("use 0 to %dd", MaxPer/(24*time.Hour))}
	}
	if l.Count > 0 && Room(p) > greatestBurst(l, MaxRefill-p.MaxWait) {
		return &PolicyError{
			"burst", fmt.Sprintf("%d takes more than 50 years to refill at %s", Room(p), l),
			fmt.Sprintf("use at most %d", greatestBurst(l, MaxRefill-p.MaxWait)),
		}
	}
	if p.MaxWait > 0 && l.Count > 0 && greatestBurst(l, p.MaxWait) >= headgate.MaxUnits-Room(p) {
		return &PolicyError{
			"max_wait", fmt.Sprintf("%s is more than 2^53 units ahead at %s", p.MaxWait, l), "use a shorter one, or a lower limit",
		}
	}
	return nil
}

// greatestBurst gives the most units that refill within d.
func greatestBurst(l headgate.Limit, d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(d), uint64(l.Count))
	if hi >= uint64(l.Per) {
		return headgate.MaxUnits
	}
	q, _ := bits.Div64(hi, lo, uint64(l.Per))
	return int64(min(q, headgate.MaxUnits))
}

func validateWindow(p headgate.Policy) error {
	l := p.Limit
	switch {
	case l.Burst != 0:
		return &PolicyError{"burst", "is not used by " + p.Algorithm.String(), "leave it out, or use token_bucket"}
	case p.MaxWait != 0:
		return &PolicyError{"max_wait", "is not used by " + p.Algorithm.String(), "use token_bucket or leaky_bucket to delay requests"}
	case p.Algorithm != headgate.SlidingWindow && p.SubWindows != 0:
		return &PolicyError{"sub_windows", "is not used by " + p.Algorithm.String(), "leave it out, or use sliding_window"}
	case p.Algorithm == headgate.SlidingWindow && (p.SubWindows < 1 || p.SubWindows > MaxSubWindows):
		return &PolicyError{"sub_windows", fmt.Sprintf("%d is out of range", p.SubWindows), fmt.Sprintf("use 1 to %d", MaxSubWindows)}
	case p.Algorithm == headgate.SlidingLog && l.Count > MaxLogCount:
		return &PolicyError{
			"count", fmt.Sprintf("%d is too long a log", l.Count),
			fmt.Sprintf("use at most %d, or sliding_window", MaxLogCount),
		}
	}
	return nil
}

func validateBan(p headgate.Policy) error {
	switch {
	case p.Limit.Burst != 0:
		return &PolicyError{"burst", "is not used by ban", "leave it out"}
	case p.SubWindows != 0:
		return &PolicyError{"sub_windows", "is not used by ban", "leave it out"}
	case p.CountRejected:
		return &PolicyError{"count_rejected", "is not used by ban", "leave it out: a ban counts every attempt"}
	case p.MaxWait != 0:
		return &PolicyError{"max_wait", "is not used by ban", "leave it out"}
	case p.BanFor < MinPer || p.BanFor > MaxPer:
		return &PolicyError{
			"ban_for", fmt.Sprintf("%s is out of range", p.BanFor),
			fmt.Sprintf("use %s to %dd", MinPer, MaxPer/(24*time.Hour)),
		}
	}
	return nil
}

// Family is what policies that count in one state have in common. Policies of one key
// and window that differ in it count apart. All bans are one family, with a Per of 0.
type Family struct {
	Algorithm headgate.Algorithm
	Per       time.Duration
}

// FamilyOf gives the family of a policy.
func FamilyOf(p headgate.Policy) Family {
	if p.Algorithm == headgate.Ban {
		return Family{Algorithm: headgate.Ban}
	}
	return Family{p.Algorithm, p.Limit.Per}
}

// Family gives the plan's family.
func (p *Plan) Family() Family { return FamilyOf(p.Policy) }

// Blocks reports whether the plan is a bucket of a limit of 0: it refuses all, and
// leaves alone what another limit has counted, for the day it comes back.
func (p *Plan) Blocks() bool { return p.count == 0 && isBucket(p.Policy.Algorithm) }

// InCell reports whether the plan's state is a Cell; a sliding log or window
// needs more.
func (p *Plan) InCell() bool {
	return p.Policy.Algorithm < headgate.SlidingLog || p.Policy.Algorithm == headgate.Ban
}

// CountsRefused reports whether an attempt that takes nothing, for a refusal by
// this plan or by another of its group, is counted all the same. possible says that
// none of the group can Never pass; a ban counts what is impossible too.
func (p *Plan) CountsRefused(possible bool) bool {
	return p.Policy.CountRejected && possible || p.Policy.Algorithm == headgate.Ban
}

// Returnable reports whether there are receipts for what the plan counts: an
// attempt that a ban has counted stays counted.
func (p *Plan) Returnable() bool { return p.Policy.Algorithm != headgate.Ban }
