package fields

import (
	"strconv"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Detail returns a sentence about the result of a request under r, with advice. It names
// the policy and contains nothing that the client sent.
func Detail(r *guard.Result) string { return string(AppendDetail(nil, r)) }

// AppendDetail appends the sentence of Detail.
func AppendDetail(b []byte, r *guard.Result) []byte {
	switch r.Decision.Reason {
	case headgate.NoRule, headgate.WithinLimit:
		return append(appendPolicy(b, "The request is within the limit of", r), '.')
	case headgate.SoftLimit:
		return append(appendLimit(b, r), "is nearly used up: send fewer requests."...)
	case headgate.Metered:
		return append(appendLimit(b, r), "is used up: the request is metered."...)
	case headgate.Degraded:
		return append(appendLimit(b, r), "is used up: the response may be reduced."...)
	case headgate.Scheduled:
		return append(appendPolicy(b, "The request waits for its turn under", r), '.')
	case headgate.Never:
		return appendNever(b, r)
	case headgate.AnonymousClient:
		return appendAnonymous(b, r)
	case headgate.KeyMissing:
		return appendLacking(b, r)
	case headgate.InFlight:
		b = appendPolicy(b, "The client has as many requests in flight as", r)
		b = strconv.AppendInt(append(b, " allows, "...), r.Limit.Count, 10)
		return append(b, ": send the next one when one of them has ended."...)
	case headgate.OverShare:
		b = appendPolicy(b, "The client has used its share of the capacity under", r)
		b = r.Limit.AppendTo(append(b, ", "...))
	case headgate.QueueFull:
		b = append(appendPolicy(b, "The queue of", r), " is full"...)
	case headgate.WaitTooLong:
		b = append(appendPolicy(b, "The wait under", r), " would be too long"...)
	case headgate.Banned:
		b = appendPolicy(b, "The client is banned after more attempts than", r)
		b = r.Limit.AppendTo(append(b, " allows, "...))
	case headgate.TooManyWaiters:
		b = append(appendPolicy(b, "Too many requests wait under", r), " already"...)
	case headgate.ThrottleFull:
		b = append(appendPolicy(b, "The service has too many requests under", r), ", and the queue is full"...)
	case headgate.ThrottleEvicted:
		b = append(appendPolicy(b, "The service has too many requests under", r), ", and a more important one took this place"...)
	case headgate.ThrottleDeadline:
		b = appendPolicy(b, "The service cannot answer before the deadline of the request under", r)
	case headgate.SourceUnavailable:
		b = append(appendPolicy(b, "The rules and plans of", r), " are not loaded yet"...)
	case headgate.PlanMissing:
		b = append(appendPolicy(b, "The client's plan under", r), " is not loaded yet"...)
	case headgate.StoreFull:
		b = append(b, "The store has no capacity to count another client"...)
	case headgate.StoreUnavailable:
		b = append(b, "The limits cannot be checked now"...)
	default:
		b = append(appendLimit(b, r), "is used up"...)
	}
	b = append(b, ": retry in "...)
	return append(strconv.AppendInt(b, RetryAfter(r), 10), " s."...)
}

// appendNever writes the sentence for a cost that the limit never admits. A limit of 0
// admits no cost.
func appendNever(b []byte, r *guard.Result) []byte {
	if r.Limit.Count == 0 {
		return append(appendPolicy(b, "The limit of", r), " is 0: nothing is admitted."...)
	}
	return append(appendPolicy(b, "The request costs more than", r), " ever admits: send a request with a lower cost."...)
}

// appendAnonymous tells the client how to name itself, as configured.
func appendAnonymous(b []byte, r *guard.Result) []byte {
	b = append(appendPolicy(b, "The request names no client, and", r), " shares among clients: name one"...)
	if r.Rule != nil && len(r.Rule.Key) > 0 {
		b = append(append(b, " by "...), r.Rule.Key[0].String()...)
	}
	return append(b, '.')
}

// appendLacking names the part of the key that the request lacks.
func appendLacking(b []byte, r *guard.Result) []byte {
	name := "part of the key"
	if part, lacks := r.Lacks(); lacks {
		name = part.String()
	}
	b = append(append(b, "The request has no "...), name...)
	return append(appendPolicy(b, ", by which it is counted under", r), ": send the request with it."...)
}

// appendPolicy appends the start of a sentence and the policy.
func appendPolicy(b []byte, begin string, r *guard.Result) []byte {
	return append(append(append(b, begin...), " the policy "...), r.Policy...)
}

// appendLimit appends the start of a sentence about the limit of the policy.
func appendLimit(b []byte, r *guard.Result) []byte {
	b = append(appendPolicy(b, "The limit of", r), ", "...)
	return append(r.Limit.AppendTo(b), ", "...)
}
