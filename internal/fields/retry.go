package fields

import (
	"math"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Delay returns how long the client of a refused request should wait: the exact time if it is known, at most
// Answer.RetryAfterMax, and Result.Spread otherwise. It is 0 for a refusal that waiting does not help.
func Delay(a *guard.Answer) time.Duration {
	return min(delay(a.Closest()), a.RetryAfterMax())
}

// delay is Delay without the bound.
func delay(r *guard.Result) time.Duration {
	if hopeless(r) {
		return 0
	}
	return wait(r)
}

// wait is delay for a refusal that waiting helps.
func wait(r *guard.Result) time.Duration {
	if r.Decision.RetryAfter <= 0 {
		return r.Spread()
	}
	return r.Decision.RetryAfter
}

// hopeless reports that a request can never pass. A refusal for the requests in flight is guard.Result.Final too, and passes
// when one of them has ended.
func hopeless(r *guard.Result) bool { return r.Final() && r.Decision.Reason != headgate.InFlight }

// IsSpread reports whether Delay is that of Result.Spread: the time of a refusal is not known.
func IsSpread(a *guard.Answer) bool {
	r := a.Closest()
	return r != nil && !hopeless(r) && r.Decision.RetryAfter <= 0
}

// longRefusal is the time from which a client does not wait within one call.
const longRefusal = time.Minute

// Discourages reports whether a refusal has X-Should-Retry: false, which some clients read: it lasts more than a minute, and the
// guard is configured so or the rule has the preset of an API.
func Discourages(a *guard.Answer) bool {
	r := a.Closest()
	return (a.XShouldRetry() || r.Rule.ModelAPI()) && (hopeless(r) || r.Decision.RetryAfter > longRefusal)
}

// FieldRetryMilliseconds is the field with the milliseconds until a retry, which clients of model APIs read before Retry-After.
const FieldRetryMilliseconds = "Retry-After-Ms"

// RetryMilliseconds returns the value of FieldRetryMilliseconds for a refusal by a rule with the preset of an API, rounded up: at least 1.
// It is 0 for other rules, and for a refusal that waiting does not help.
func RetryMilliseconds(a *guard.Answer) int64 {
	if r := a.Closest(); r == nil || !r.Rule.ModelAPI() {
		return 0
	}
	wait := Delay(a)
	if wait <= 0 {
		return 0
	}
	return int64((wait-1)/time.Millisecond) + 1
}

// RetryAfter returns the seconds of Retry-After for a refusal, rounded up: at least 1, and without the bound of Delay. RateLimit and
// the text of a refusal state them too.
func RetryAfter(r *guard.Result) int64 { return RetrySeconds(wait(r)) }

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
// call can pass, rounded up. The value is "-1" (do not retry) for a refusal that waiting does not help, and for one
// that lasts more than a minute.
func Pushback(r *guard.Result) string {
	wait := delay(r)
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
		return RetryAfter(r)
	}
	return Seconds(d.ResetAfter)
}

// resetAt is reset as a Unix time in seconds, rounded up. The store's clock tells the time, or that of the machine if the
// decision has none.
func resetAt(r *guard.Result) int64 {
	d := &r.Decision
	at, left := d.At, d.ResetAfter
	if at == 0 {
		at = headgate.Instant(time.Now().UnixNano())
	}
	if d.Verdict == headgate.Deny && !r.Final() {
		left = wait(r)
	}
	return Seconds(time.Duration(at) + min(left, math.MaxInt64-time.Duration(at)))
}
