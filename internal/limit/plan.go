package limit

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
)

// Bounds of the policies that Compile accepts. They keep every product within 128
// bits and every sum of times within an int64.
const (
	// MinPer is the shortest period.
	MinPer = time.Microsecond
	// MaxPer is the longest period: a leap year and a day.
	MaxPer = 367 * 24 * time.Hour
	// MaxRefill bounds the time in which a full Burst refills, including MaxWait. The time
	// now + 2 x MaxRefill stays within an Instant until the year 2162.
	MaxRefill = 50 * 365 * 24 * time.Hour
	// MaxSubWindows bounds the counters of a sliding window, and the longest loop of a decision.
	MaxSubWindows = 256
	// MaxLogCount bounds the units of one log. Each entry takes 16 bytes.
	MaxLogCount = 1 << 24
)

// Plan is a compiled Policy. It is immutable and safe for concurrent use.
type Plan struct {
	Policy headgate.Policy

	count     int64
	burst     int64
	per       int64 // nanoseconds
	leaky     bool
	wholeStep bool
	inCell    bool

	// The emission interval is num/den nanoseconds: Per/Count, not in lowest terms. So two
	// policies with one period convert their counts without rounding.
	num, den uint64
	step     int64  // num/den if that is a whole number, else 0
	inverse  uint64 // floor((2^64-1)/step)
	interval span   // num/den
	refill   span   // burst intervals: the time in which an empty bucket refills
	horizon  span   // the furthest time of a booking or a debt: refill, plus the longer one of both
	owe      int64  // the largest debt: Overdraft, or less if a debt would last longer than MaxRefill
}

// Compile checks a policy and computes its constants. The error is a *PolicyError. The Plan
// does not keep policy.Named.
func Compile(policy headgate.Policy) (*Plan, error) {
	policy.Named = false
	if err := validate(policy); err != nil {
		return nil, err
	}
	p := &Plan{Policy: policy, count: policy.Limit.Count, burst: Room(policy), per: int64(policy.Limit.Per)}
	p.leaky, p.inCell = policy.Algorithm == headgate.LeakyBucket, !TraitsOf(policy.Algorithm).Blocks()
	if p.count == 0 {
		p.num, p.den, p.step, p.inverse = 1, 1, 1, ^uint64(0)
		return p, nil
	}
	p.owe = min(policy.Overdraft, LargestDebt(policy))
	p.num, p.den = uint64(p.per), uint64(p.count)
	p.interval = span{int64(p.num / p.den), p.num % p.den}
	if p.interval.part == 0 && p.interval.ns > 0 {
		p.step, p.inverse = p.interval.ns, ^uint64(0)/uint64(p.interval.ns)
	}
	p.wholeStep = p.step > 0 && !p.leaky && isBucket(policy.Algorithm)
	p.refill = p.spanOf(p.burst)
	ahead := span{}
	if isBucket(policy.Algorithm) {
		ahead = p.spanOf(p.owe)
	}
	if wait := (span{int64(policy.MaxWait), 0}); !p.leaky && wait.after(ahead) {
		ahead = wait
	}
	p.horizon = p.refill.add(ahead, p.den)
	return p, nil
}

// Room returns the largest number of units that the policy admits at once. For a bucket
// that is Burst, or Count if Burst is 0. For a window it is Count.
func Room(policy headgate.Policy) int64 {
	if isBucket(policy.Algorithm) && policy.Limit.Burst > 0 {
		return policy.Limit.Burst
	}
	return policy.Limit.Count
}

// PolicyError describes an invalid field of a policy: the problem and the fix.
type PolicyError struct {
	Field   string
	Problem string
	Fix     string
}

// Error returns the field, the problem and the fix in one line.
func (e *PolicyError) Error() string {
	return fmt.Sprintf("limit: %s %s: %s", e.Field, e.Problem, e.Fix)
}

// validate returns the first error of a policy.
func validate(p headgate.Policy) error {
	l := p.Limit
	switch {
	case p.Algorithm > headgate.Ban:
		return &PolicyError{"algorithm", fmt.Sprintf("%d is not known", p.Algorithm), "use one of " + fmt.Sprint(headgate.Algorithms())}
	case l.Count < 0 || l.Count > headgate.MaxUnits:
		return &PolicyError{"count", fmt.Sprintf("%d is out of range", l.Count), fmt.Sprintf("use 0 to %d", int64(headgate.MaxUnits))}
	case l.Calendar != headgate.NoCalendar && !countsCalendar(p):
		return calendarError(p)
	case l.Calendar == headgate.NoCalendar && (l.Per < MinPer || l.Per > MaxPer):
		return &PolicyError{"period", fmt.Sprintf("%s is out of range", l.Per), fmt.Sprintf("use %s to %dd", MinPer, MaxPer/(24*time.Hour))}
	case p.CountAll && !TraitsOf(p.Algorithm).Uses(FieldCountAll):
		return &PolicyError{"count_all", "is not used by " + p.Algorithm.String(), "leave it out, or use fixed_window"}
	case p.CountAll && !p.CountRejected:
		return &PolicyError{"count_all", "counts refused attempts, and count_rejected is false", "set count_rejected too, or leave it out"}
	case p.Algorithm != headgate.Ban && p.BanFor != 0:
		return &PolicyError{"ban_for", "is not used by " + p.Algorithm.String(), "leave it out, or use ban"}
	case p.Overdraft < 0 || p.Overdraft > headgate.MaxUnits:
		return &PolicyError{
			"overdraft", fmt.Sprintf("%d is out of range", p.Overdraft), fmt.Sprintf("use 0 to %d", int64(headgate.MaxUnits)),
		}
	case p.Overdraft > 0 && p.CountRejected:
		return &PolicyError{
			"overdraft", "would make a debt of refused attempts, because count_rejected is true", "leave out overdraft or count_rejected",
		}
	case p.Overdraft > 0 && p.Algorithm == headgate.Ban:
		return &PolicyError{"overdraft", "is not used by ban", "leave it out"}
	case p.Hold != 0 || p.Batch != 0:
		return &PolicyError{"prefetch", "is not done by this store itself", "prefetch before a shared store, or leave it out"}
	}
	return TraitsOf(p.Algorithm).validate(p)
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

// greatestBurst returns the largest number of units that refill within d.
func greatestBurst(l headgate.Limit, d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(d), uint64(l.Count))
	if hi >= uint64(l.Per) {
		return headgate.MaxUnits
	}
	q, _ := bits.Div64(hi, lo, uint64(l.Per))
	return int64(min(q, headgate.MaxUnits))
}

// validateWindow checks a window without sub-windows.
func validateWindow(p headgate.Policy) error {
	if err := validateUnits(p); err != nil {
		return err
	}
	if p.SubWindows != 0 {
		return &PolicyError{"sub_windows", "is not used by " + p.Algorithm.String(), "leave it out, or use sliding_window"}
	}
	return nil
}

// validateUnits refuses the fields of buckets.
func validateUnits(p headgate.Policy) error {
	switch {
	case p.Limit.Burst != 0:
		return &PolicyError{"burst", "is not used by " + p.Algorithm.String(), "leave it out, or use token_bucket"}
	case p.MaxWait != 0:
		return &PolicyError{"max_wait", "is not used by " + p.Algorithm.String(), "use token_bucket or leaky_bucket to delay requests"}
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

// Family is the common property of policies that count in one state. Policies of one key
// and window with different families count separately. All bans are one family, with a
// Per of 0. Windows of one unit of the calendar are one family, whatever their edges.
type Family struct {
	Algorithm headgate.Algorithm
	Per       time.Duration
	Calendar  headgate.CalendarUnit
}

// FamilyOf returns the family of a policy.
func FamilyOf(p headgate.Policy) Family {
	if p.Algorithm == headgate.Ban {
		return Family{Algorithm: headgate.Ban}
	}
	return Family{p.Algorithm, p.Limit.Per, p.Limit.Calendar}
}

// Family returns the family of the plan.
func (p *Plan) Family() Family { return FamilyOf(p.Policy) }

// Blocks reports whether the plan is a bucket with a limit of 0. Such a plan refuses all
// requests, and keeps the count of other limits unchanged.
func (p *Plan) Blocks() bool { return p.count == 0 && isBucket(p.Policy.Algorithm) }

// InCell reports whether a Cell holds the plan's whole state. Other plans need a block.
func (p *Plan) InCell() bool { return p.inCell }

// CountsRefused reports whether a refused attempt is counted, also when another plan of the
// request refused it. possible is false if any plan of the request refused with Never. A
// ban, and a policy with CountAll, count such attempts too.
func (p *Plan) CountsRefused(possible bool) bool { return CountsRefused(&p.Policy, possible) }

// CountsRefused is Plan.CountsRefused for a policy.
func CountsRefused(p *headgate.Policy, possible bool) bool {
	return p.CountRejected && possible || p.CountAll || p.Algorithm == headgate.Ban
}

// Returnable reports whether taken units can be returned. The attempts of a ban cannot.
func (p *Plan) Returnable() bool { return p.Policy.Algorithm != headgate.Ban }
