package fields

import (
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// RetryAfter gives the seconds of Retry-After for a refusal, rounded up: at least
// 1, since 0 would ask for an attempt that was just refused. A refusal that is
// guard.Result.Final has no such field.
func RetryAfter(d *headgate.Decision) int64 { return max(1, seconds(d.RetryAfter)) }

// FieldPushback is the trailer by which a server of gRPC tells clients with a retry
// policy of their own when to try again.
const FieldPushback = "Grpc-Retry-Pushback-Ms"

// longestPushback bounds a wait that a client of gRPC takes on by itself: a call
// without a deadline would hang for that long.
const longestPushback = time.Minute

// Pushback gives the value of FieldPushback for a refusal: the milliseconds until the
// call can pass, rounded up. It is "-1", which means not to retry, for a refusal that
// is guard.Result.Final, or that holds for more than a minute.
func Pushback(r *guard.Result) string {
	wait := r.Decision.RetryAfter
	if wait <= 0 {
		wait = time.Duration(RetryAfter(&r.Decision)) * time.Second
	}
	if r.Final() || wait > longestPushback {
		return "-1"
	}
	return strconv.FormatInt(int64((wait+time.Millisecond-1)/time.Millisecond), 10)
}

// reset gives the seconds until there is more: for a refusal when it can pass, so
// that it agrees with Retry-After, else when nothing is counted any more.
func reset(r *guard.Result) int64 {
	d := &r.Decision
	if d.Verdict == headgate.Deny && !r.Final() {
		return RetryAfter(d)
	}
	return seconds(d.ResetAfter)
}

// seconds rounds up, so that nobody comes back too early. It does not overflow.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return max(0, whole)
}

// Detail says in a sentence what became of a request under r, and what to do. It
// names the policy and repeats nothing that the caller sent.
func Detail(r *guard.Result) string { return string(AppendDetail(nil, r)) }

// AppendDetail appends what Detail says.
func AppendDetail(b []byte, r *guard.Result) []byte {
	switch r.Decision.Reason {
	case headgate.NoRule, headgate.WithinLimit:
		return append(appendPolicy(b, "The request is within the limit of", r), '.')
	case headgate.SoftLimit:
		return append(appendLimit(b, r), "is nearly used up: send fewer requests."...)
	case headgate.Degraded:
		return append(appendLimit(b, r), "is used up: the response may be reduced."...)
	case headgate.Scheduled:
		return append(appendPolicy(b, "The request waits for its turn under", r), '.')
	case headgate.Never:
		return appendNever(b, r)
	case headgate.AnonymousClient:
		return appendAnonymous(b, r)
	case headgate.OverShare:
		b = appendPolicy(b, "The client has used its share of the capacity under", r)
		b = append(append(b, ", "...), r.Limit.String()...)
	case headgate.QueueFull:
		b = append(appendPolicy(b, "The queue of", r), " is full"...)
	case headgate.WaitTooLong:
		b = append(appendPolicy(b, "The wait under", r), " would be too long"...)
	case headgate.Banned:
		b = appendPolicy(b, "The client is banned after more attempts than", r)
		b = append(append(b, " allows, "...), r.Limit.String()...)
	case headgate.TooManyWaiters:
		b = append(appendPolicy(b, "Too many requests wait under", r), " already"...)
	case headgate.StoreFull:
		b = append(b, "The store has no capacity to count another client"...)
	case headgate.StoreUnavailable:
		b = append(b, "The limits cannot be checked now"...)
	default:
		b = append(appendLimit(b, r), "is used up"...)
	}
	b = append(b, ": retry in "...)
	return append(strconv.AppendInt(b, RetryAfter(&r.Decision), 10), " s."...)
}

// appendNever says whether there is a cost that would pass: under a limit of 0 there is none.
func appendNever(b []byte, r *guard.Result) []byte {
	if r.Limit.Count == 0 {
		return append(appendPolicy(b, "The limit of", r), " is 0: nothing is admitted."...)
	}
	return append(appendPolicy(b, "The request costs more than", r), " ever admits: send a request with a lower cost."...)
}

// appendAnonymous says what names a client, which is of the configuration.
func appendAnonymous(b []byte, r *guard.Result) []byte {
	b = append(appendPolicy(b, "The request names no client, and", r), " shares among clients: name one"...)
	if r.Rule != nil && len(r.Rule.Key) > 0 {
		b = append(append(b, " by "...), r.Rule.Key[0].String()...)
	}
	return append(b, '.')
}

// appendPolicy appends the begin of a sentence and the policy.
func appendPolicy(b []byte, begin string, r *guard.Result) []byte {
	return append(append(append(b, begin...), " the policy "...), r.Policy...)
}

// appendLimit appends the begin of a sentence about the limit of the policy.
func appendLimit(b []byte, r *guard.Result) []byte {
	b = append(appendPolicy(b, "The limit of", r), ", "...)
	return append(append(b, r.Limit.String()...), ", "...)
}
