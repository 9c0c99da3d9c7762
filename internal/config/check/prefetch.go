package check

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit"
)

const (
	// LeastHold is roughly one round trip to a store: units held for less expire on the way.
	LeastHold = time.Millisecond
	// MostHold bounds how long unused units are held.
	MostHold = time.Hour
	// holdPart is the default hold: the period divided by 200. Held units that expire cost at
	// most 1/201 of the limit.
	holdPart = 200
)

// Unprefetchable says why no units of a rule can be taken ahead of need: the rule queries the
// store for every request. The problem is "" if units can be taken.
func Unprefetchable(r *guard.Rule, p headgate.Policy) (problem, fix string) {
	switch {
	case p.Algorithm == headgate.LeakyBucket:
		return "leaky_bucket schedules each request in the store", "write prefetch: off, or use another algorithm"
	case p.CountRejected:
		return "count_rejected counts every refusal in the store", "write prefetch: off, or leave count_rejected out"
	case r.Exceed.Action == guard.Delay:
		return "delay schedules each request in the store", "write prefetch: off, or use another action"
	case r.Exceed.Hard.Limit.HasPeriod():
		return "the hard limit counts every request in the store", "write prefetch: off, or leave hard out"
	case r.Settles():
		return "settle charges units in the store", "write prefetch: off, or leave settle out"
	case r.LimitsFrom.Most.Limit.HasPeriod():
		return "limits_from has limits that are not known before", "write prefetch: off, or leave limits_from out"
	case r.Ban.For > 0:
		return "the ban counts every attempt in the store", "write prefetch: off, or leave ban out"
	default:
		return "", ""
	}
}

// Fit returns nil if the store of a configuration can count a policy, or the reason why not.
type Fit func(headgate.Policy) error

// Hold returns the policies of one key with Hold and Batch set. A hold of 0 means 1/200 of
// each period. All policies get the shortest hold, because a request needs units of every
// limit: units that outlive the others waste capacity.
//
// If one policy cannot be held, Hold changes none, because each request queries the store for
// that policy anyway. Then problem says why. A limit of 0 is never held, without a problem.
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
	bad, found := errortype.As[*limit.PolicyError](fit(held))
	if !found || fit(p) != nil {
		return "", ""
	}
	problem = fmt.Sprintf("with a hold of %s the %s %s", field.FormatDuration(held.Hold), bad.Field, bad.Problem)
	return problem, bad.Fix + ", or write prefetch: off"
}

// holdOf returns the hold for one policy. A wanted hold of 0 means 1/200 of its period.
func holdOf(p headgate.Policy, wanted time.Duration) (held time.Duration, problem, fix string) {
	per, most := p.Limit.Per, GreatestHold(p)
	held = wanted
	if wanted == 0 {
		held = min(per/holdPart, MostHold).Truncate(time.Microsecond)
	}
	text, ahead := field.FormatLimit(p), limit.TraitsOf(p.Algorithm).Ahead
	switch {
	case p.Limit.Calendar != headgate.NoCalendar:
		return 0, fmt.Sprintf("no units of %s can be taken ahead, because the store picks the %s of each request", text, p.Limit.Period()),
			"write prefetch: off, or use a period with a length"
	case most < LeastHold && ahead == limit.AheadByBurst:
		return 0, fmt.Sprintf("%s refills its whole burst within the shortest hold of %s",
				text, field.FormatDuration(LeastHold)),
			"write prefetch: off, or raise the burst"
	case most < LeastHold && per > MostHold:
		return 0, fmt.Sprintf("the period of %s and a hold together exceed the longest period", text),
			"write prefetch: off, or use a shorter period"
	case most < LeastHold:
		return 0, fmt.Sprintf("the period of %s is too short for a hold of %s", text, field.FormatDuration(LeastHold)),
			"write prefetch: off, or use a longer period"
	case held < LeastHold:
		return 0, fmt.Sprintf("units of %s would be held for %s, less than one round trip to the store", text, held),
			fmt.Sprintf("write prefetch: off, or {batch: auto, hold: %s}", field.FormatDuration(min(5*LeastHold, most)))
	case held > most && ahead == limit.AheadByBurst:
		return 0, fmt.Sprintf("%s refills its whole burst in a hold of %s", text, field.FormatDuration(held)),
			fmt.Sprintf("use a hold of at most %s, raise the burst, or write prefetch: off", field.FormatDuration(most))
	case held > most:
		return 0, fmt.Sprintf("a hold of %s is more than half of the period of %s", field.FormatDuration(held), text),
			fmt.Sprintf("use at most %s, or write prefetch: off", field.FormatDuration(most))
	}
	return held, "", ""
}

// GreatestHold returns the longest hold of a policy, in whole microseconds, at most half of its
// period. With limit.AheadByPeriod, the period and the hold together must not exceed limit.MaxPer. With
// limit.AheadByBurst, burst - ceil(count x hold / period) must be 1 or more.
func GreatestHold(p headgate.Policy) time.Duration {
	per := p.Limit.Per
	most := min(per/2, MostHold)
	switch limit.TraitsOf(p.Algorithm).Ahead {
	case limit.AheadByPeriod:
		most = min(most, limit.MaxPer-per)
	case limit.AheadByBurst:
		hi, lo := bits.Mul64(uint64(limit.Room(p)-1), uint64(per))
		if hi < uint64(p.Limit.Count) {
			refill, _ := bits.Div64(hi, lo, uint64(p.Limit.Count))
			most = time.Duration(min(uint64(most), refill))
		}
	default:
	}
	return most.Truncate(time.Microsecond)
}
