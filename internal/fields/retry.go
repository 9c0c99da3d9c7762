package fields

import (
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// leastDelay is the wait that a refusal states if the time until the request can pass is not known. A wait of 0 would
// cause an immediate retry.
const leastDelay = time.Second

// Delay returns how long the client of a refused request should wait: the exact time if it is known, and at least
// leastDelay otherwise. It is 0 for a refusal that is guard.Result.Final: waiting does not help.
func Delay(r *guard.Result) time.Duration {
	switch {
	case r.Final():
		return 0
	case r.Decision.RetryAfter <= 0:
		return leastDelay
	default:
		return r.Decision.RetryAfter
	}
}

// RetryAfter returns the seconds of Retry-After for a refusal, rounded up. The result is at
// least 1. A refusal that is guard.Result.Final must not have the field.
func RetryAfter(d *headgate.Decision) int64 { return RetrySeconds(d.RetryAfter) }

// RetrySeconds is RetryAfter for a wait without a decision.
func RetrySeconds(wait time.Duration) int64 { return max(1, Seconds(wait)) }

// Seconds rounds a time up to whole seconds, so that clients do not return too early. All fronts that round up to whole seconds
// use it. It does not overflow. A negative time is 0.
func Seconds(d time.Duration) int64 {
	count := int64(d / time.Second)
	if d%time.Second > 0 {
		count++
	}
	return max(0, count)
}

// FieldPushback is the trailer with which a gRPC server tells clients that have a retry
// policy when to retry.
const FieldPushback = "Grpc-Retry-Pushback-Ms"

// longestPushback bounds the wait that a gRPC client accepts automatically. A call without
// a deadline would block for that time.
const longestPushback = time.Minute

// Pushback returns the value of FieldPushback for a refusal: the milliseconds until the
// call can pass, rounded up. The value is "-1" (do not retry) for a refusal that is
// guard.Result.Final, and for one that lasts more than a minute.
func Pushback(r *guard.Result) string {
	wait := Delay(r)
	if wait == 0 || wait > longestPushback {
		return "-1"
	}
	return strconv.FormatInt(int64((wait+time.Millisecond-1)/time.Millisecond), 10)
}

// reset returns the seconds until units are available. For a refusal it agrees with
// Retry-After. Otherwise it is the time until
// no units count against the limit.
func reset(r *guard.Result) int64 {
	d := &r.Decision
	if d.Verdict == headgate.Deny && !r.Final() {
		return RetryAfter(d)
	}
	return Seconds(d.ResetAfter)
}
