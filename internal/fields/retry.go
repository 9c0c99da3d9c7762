package fields

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// leastDelay is the wait that RateLimit and the text of a refusal state if the time until the request can pass is not known. A wait
// of 0 would cause an immediate retry.
const leastDelay = time.Second

// spreads is the number of different waits of Spread.
const spreads = 2

// Spread returns the wait for clients whose request can pass at a time that is not known: 1 s or 2 s, by chance. Many clients
// may be refused at one time, and must not return at one time.
func Spread() time.Duration {
	return leastDelay + time.Second*time.Duration(rand.IntN(spreads))
}

// Delay returns how long the client of a refused request should wait: the exact time if it is known, at most
// Answer.RetryAfterMax, and Spread otherwise. It is 0 for a refusal that waiting does not help.
func Delay(a *guard.Answer) time.Duration {
	return min(delay(a.Closest()), a.RetryAfterMax())
}

// delay is Delay without the bound.
func delay(r *guard.Result) time.Duration {
	switch {
	case hopeless(r):
		return 0
	case r.Decision.RetryAfter <= 0:
		return Spread()
	default:
		return r.Decision.RetryAfter
	}
}

// hopeless reports that a request can never pass. A refusal for the requests in flight is guard.Result.Final too, and passes
// when one of them has ended.
func hopeless(r *guard.Result) bool { return r.Final() && r.Decision.Reason != headgate.InFlight }

// IsSpread reports whether Delay is that of Spread: the time of a refusal is not known.
func IsSpread(a *guard.Answer) bool {
	r := a.Closest()
	return r != nil && !hopeless(r) && r.Decision.RetryAfter <= 0
}

// longRefusal is the time from which a client does not wait within one call.
const longRefusal = time.Minute

// Discourages reports whether a refusal has X-Should-Retry: false, which some clients read: it lasts more than a minute, and the
// guard is configured so.
func Discourages(a *guard.Answer) bool {
	r := a.Closest()
	return a.XShouldRetry() && (hopeless(r) || r.Decision.RetryAfter > longRefusal)
}

// RetryAfter returns the seconds of Retry-After for a refusal, rounded up. The result is at
// least 1, and exact: see Delay for the bound.
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
		return RetryAfter(d)
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
		left = max(d.RetryAfter, leastDelay)
	}
	return Seconds(time.Duration(at) + min(left, math.MaxInt64-time.Duration(at)))
}
