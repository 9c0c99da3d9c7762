package config

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/limit"
)

// notPrefetched says why nothing of a rule can be taken ahead of need: the store must
// be asked with every request.
func notPrefetched(r *guard.Rule, p headgate.Policy) (problem, fix string) {
	switch {
	case p.Algorithm == headgate.LeakyBucket:
		return "leaky_bucket lets requests depart one by one", "write prefetch: off, or use another algorithm"
	case p.CountRejected:
		return "count_rejected counts every refusal in the store", "write prefetch: off, or leave count_rejected out"
	case r.Exceed.Action == guard.Delay:
		return "delay books each departure in the store", "write prefetch: off, or use another action"
	case r.Exceed.Hard.Limit.Per > 0:
		return "the hard limit counts every request in the store", "write prefetch: off, or leave hard out"
	case r.Ban.For > 0:
		return "the ban counts every attempt in the store", "write prefetch: off, or leave ban out"
	default:
		return "", ""
	}
}

// hold sets Hold and Batch of all policies of a key or, when one of them does not fit,
// of none: what one must ask for, the others need not hold. All are held for the
// shortest of their times: units that one of them has no more are of no use, and what
// the others would be held beyond that is capacity lost. Limits of 0 hold nothing.
func (c *counting) hold(policies []headgate.Policy, setting Prefetch) (problem, fix string) {
	shortest := mostHold
	for _, p := range policies {
		if p.Limit.Count == 0 {
			return "", ""
		}
		held, problem, fix := holdOf(p, setting.Hold)
		if problem != "" {
			return problem, fix
		}
		shortest = min(shortest, held)
	}
	all := make([]headgate.Policy, 0, len(policies))
	for _, p := range policies {
		held := p
		held.Hold, held.Batch = shortest, setting.Batch
		if problem, fix := c.holds(p, held); problem != "" {
			return problem, fix
		}
		all = append(all, held)
	}
	copy(policies, all)
	return "", ""
}

// holds finds a policy that the store could count, were it not held. One that it
// cannot count at all, checkFits tells of.
func (c *counting) holds(p, held headgate.Policy) (problem, fix string) {
	err := c.fit(held)
	bad, found := errors.AsType[*limit.PolicyError](err)
	if !found {
		return "", ""
	}
	if err := c.fit(p); err != nil {
		return "", ""
	}
	problem = fmt.Sprintf("with a hold of %s the %s %s", formatDuration(held.Hold), bad.Field, bad.Problem)
	return problem, bad.Fix + ", or write prefetch: off"
}

// holdOf gives for how long units of one policy are held; wanted 0 is the
// two-hundredth part of its period.
func holdOf(p headgate.Policy, wanted time.Duration) (held time.Duration, problem, fix string) {
	per, most := p.Limit.Per, greatestHold(p)
	held = wanted
	if wanted == 0 {
		held = min(per/holdPart, mostHold).Truncate(time.Microsecond)
	}
	text := limitText(p)
	switch {
	case most < leastHold && p.Algorithm == headgate.TokenBucket:
		return 0, fmt.Sprintf("%s has no room for a hold of %s, during which the burst must not refill", text, formatDuration(leastHold)),
			"write prefetch: off, or raise the burst"
	case most < leastHold && per > mostHold:
		return 0, fmt.Sprintf("%s and a hold together are longer than the longest period", text),
			"write prefetch: off, or use a shorter period"
	case most < leastHold:
		return 0, fmt.Sprintf("%s is over before units of it could be held for %s", text, formatDuration(leastHold)),
			"write prefetch: off, or use a longer period"
	case held < leastHold:
		return 0, fmt.Sprintf("%s would be held for %s, less than a trip to the store takes", text, held),
			fmt.Sprintf("write prefetch: off, or {batch: auto, hold: %s}", formatDuration(min(5*leastHold, most)))
	case held > most && p.Algorithm == headgate.TokenBucket:
		return 0, fmt.Sprintf("%s refills its whole burst in a hold of %s", text, formatDuration(held)),
			fmt.Sprintf("use a hold of at most %s, raise the burst, or write prefetch: off", formatDuration(most))
	case held > most:
		return 0, fmt.Sprintf("a hold of %s is more than half of the period of %s", formatDuration(held), text),
			fmt.Sprintf("use at most %s, or write prefetch: off", formatDuration(most))
	}
	return held, "", ""
}

// greatestHold gives the longest hold that a policy has room for, in whole
// microseconds: half of its period; less where the period and the hold of a log
// together, which the store counts, would be too long; and for a bucket what refills all of its burst
// but one unit: burst - ceil(count x hold / per) must be 1 or more.
func greatestHold(p headgate.Policy) time.Duration {
	per := p.Limit.Per
	most := min(per/2, mostHold)
	switch p.Algorithm {
	case headgate.SlidingLog:
		most = min(most, limit.MaxPer-per)
	case headgate.TokenBucket:
		hi, lo := bits.Mul64(uint64(limit.Room(p)-1), uint64(per))
		if hi < uint64(p.Limit.Count) {
			refill, _ := bits.Div64(hi, lo, uint64(p.Limit.Count))
			most = time.Duration(min(uint64(most), refill))
		}
	default:
	}
	return most.Truncate(time.Microsecond)
}

// holdsOf gives the different holds of a rule's limits and of its overrides', shortest first.
func holdsOf(r *guard.Rule) []time.Duration {
	var holds []time.Duration
	for _, set := range setsOf(r) {
		for _, p := range set {
			if p.Hold > 0 && !slices.Contains(holds, p.Hold) {
				holds = append(holds, p.Hold)
			}
		}
	}
	slices.Sort(holds)
	return holds
}

// withoutHold gives the policies as they are counted when nothing is taken ahead.
func withoutHold(policies []headgate.Policy) []headgate.Policy {
	own := slices.Clone(policies)
	for i := range own {
		own[i].Hold, own[i].Batch = 0, 0
	}
	return own
}
