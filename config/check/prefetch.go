package check

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/limit"
)

const (
	// LeastHold is about one round trip to a store: units held for less expire before they arrive.
	LeastHold = time.Millisecond
	// MostHold bounds how long unused units are held.
	MostHold = time.Hour
	// holdPart is the part of a limit's period for which units are held by default. It costs at
	// most 1/201 of the limit.
	holdPart = 200
)

// Unprefetchable says why no units of a rule can be taken ahead of need: the rule queries the
// store for every request. The problem is "" if units can be taken.
func Unprefetchable(r *guard.Rule, p headgate.Policy) (problem, fix string) {
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

// Fit reports whether the store of a configuration can count a policy: nil, or why it cannot.
type Fit func(headgate.Policy) error

// Hold returns the policies of one key with Hold and Batch set. A hold of 0 is the two-hundredth
// part of each period. All policies get the shortest of their holds: units that one limit no
// longer has are useless, and longer holds of the others waste capacity.
//
// If one policy cannot be held, none is, because the store must be queried for that one anyway.
// The problem then says why. Policies with a limit of 0 are never held, without a problem.
func Hold(policies []headgate.Policy, hold time.Duration, batch int64, fit Fit) (held []headgate.Policy, problem, fix string) {
	shortest := MostHold
	for _, p := range policies {
		if p.Limit.Count == 0 {
			return policies, "", ""
		}
		one, problem, fix := holdOf(p, hold)
		if problem != "" {
			return policies, problem, fix
		}
		shortest = min(shortest, one)
	}
	held = make([]headgate.Policy, 0, len(policies))
	for _, p := range policies {
		with := p
		with.Hold, with.Batch = shortest, batch
		if problem, fix := unfitHold(p, with, fit); problem != "" {
			return policies, problem, fix
		}
		held = append(held, with)
	}
	return held, "", ""
}

// unfitHold says why the store cannot count a held policy that it could count without the hold.
func unfitHold(p, held headgate.Policy, fit Fit) (problem, fix string) {
	bad, found := errors.AsType[*limit.PolicyError](fit(held))
	if !found || fit(p) != nil {
		return "", ""
	}
	problem = fmt.Sprintf("with a hold of %s the %s %s", field.FormatDuration(held.Hold), bad.Field, bad.Problem)
	return problem, bad.Fix + ", or write prefetch: off"
}

// holdOf gives for how long units of one policy are held; wanted 0 is the
// two-hundredth part of its period.
func holdOf(p headgate.Policy, wanted time.Duration) (held time.Duration, problem, fix string) {
	per, most := p.Limit.Per, GreatestHold(p)
	held = wanted
	if wanted == 0 {
		held = min(per/holdPart, MostHold).Truncate(time.Microsecond)
	}
	text := field.FormatLimit(p)
	switch {
	case most < LeastHold && p.Algorithm == headgate.TokenBucket:
		return 0, fmt.Sprintf("%s has no room for a hold of %s, during which the burst must not refill",
				text, field.FormatDuration(LeastHold)),
			"write prefetch: off, or raise the burst"
	case most < LeastHold && per > MostHold:
		return 0, fmt.Sprintf("%s and a hold together are longer than the longest period", text),
			"write prefetch: off, or use a shorter period"
	case most < LeastHold:
		return 0, fmt.Sprintf("%s is over before units of it could be held for %s", text, field.FormatDuration(LeastHold)),
			"write prefetch: off, or use a longer period"
	case held < LeastHold:
		return 0, fmt.Sprintf("%s would be held for %s, less than a trip to the store takes", text, held),
			fmt.Sprintf("write prefetch: off, or {batch: auto, hold: %s}", field.FormatDuration(min(5*LeastHold, most)))
	case held > most && p.Algorithm == headgate.TokenBucket:
		return 0, fmt.Sprintf("%s refills its whole burst in a hold of %s", text, field.FormatDuration(held)),
			fmt.Sprintf("use a hold of at most %s, raise the burst, or write prefetch: off", field.FormatDuration(most))
	case held > most:
		return 0, fmt.Sprintf("a hold of %s is more than half of the period of %s", field.FormatDuration(held), text),
			fmt.Sprintf("use at most %s, or write prefetch: off", field.FormatDuration(most))
	}
	return held, "", ""
}

// GreatestHold gives the longest hold that a policy has room for, in whole
// microseconds: half of its period; less where the period and the hold of a log
// together, which the store counts, would be too long; and for a bucket what refills all of its burst
// but one unit: burst - ceil(count x hold / per) must be 1 or more.
func GreatestHold(p headgate.Policy) time.Duration {
	per := p.Limit.Per
	most := min(per/2, MostHold)
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
