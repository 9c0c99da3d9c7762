package headgate

import (
	"fmt"
	"time"
)

// Instant is a time on the clock of the store that decided, in nanoseconds since
// the Unix epoch. Shared stores give whole microseconds.
type Instant int64

// Time converts the instant to a wall time in UTC.
func (t Instant) Time() time.Time { return time.Unix(0, int64(t)).UTC() }

// Add returns the instant d later.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Sub returns the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Verdict says whether a request may go.
type Verdict uint8

const (
	// Allow means that the request may go now.
	Allow Verdict = iota
	// Wait means that the request may go after RetryAfter. The store has booked its departure.
	Wait
	// Deny means that the request is refused.
	Deny
)

// String returns "allow", "wait" or "deny".
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Wait:
		return "wait"
	case Deny:
		return "deny"
	default:
		return fmt.Sprintf("verdict(%d)", uint8(v))
	}
}

// Reason says why a Decision has its Verdict. Metrics, logs and problem bodies show it.
type Reason uint8

const (
	// NoRule means that no rule matches the request.
	NoRule Reason = iota
	// WithinLimit means that the counted units, this request included, are within the limit.
	WithinLimit
	// Scheduled means that a departure is booked and the request waits for it.
	Scheduled
	// OverLimit means that the limit is used up. RetryAfter says when it has capacity again.
	OverLimit
	// QueueFull means that the queue of the leaky bucket is full.
	QueueFull
	// WaitTooLong means that the next free departure is later than MaxWait allows.
	WaitTooLong
	// Never means that the cost is above the most that the limit can admit at once.
	// RetryAfter is 0.
	Never
	// StoreFull means that the store has no capacity for a new key. The store's on_full
	// setting decided.
	StoreFull
	// StoreUnavailable means that the store did not answer. The rule's fallback decided.
	StoreUnavailable
	// SoftLimit means that the request passes, but the counted units exceed the soft limit
	// of the rule.
	SoftLimit
	// Degraded means that the limit is used up, but the rule lets the request pass with
	// reduced service.
	Degraded
	// Banned means that the key made too many attempts. RetryAfter says when the ban ends.
	Banned
	// TooManyWaiters means that the rule has its maximum number of waiters. RetryAfter is
	// the time that this request would have waited. The client is not at fault.
	TooManyWaiters
	// OverShare means that the client has used its share of the service's capacity, and
	// no other client has unused capacity. RetryAfter says when the next cycle begins.
	OverShare
	// AnonymousClient means that the request does not identify its client, so no share
	// applies to it. RetryAfter is 0.
	AnonymousClient
	// ThrottleFull means that the service has as many requests as it can do, and the queue
	// before it is full. RetryAfter is the time that the queued work takes to drain.
	ThrottleFull
	// ThrottleEvicted means that the request was queued for the service, and more important
	// work took its place. RetryAfter is the time that the queued work takes to drain.
	ThrottleEvicted
	// ThrottleDeadline means that the service could not answer before the deadline of the
	// request. RetryAfter is the time that the queued work takes to drain.
	ThrottleDeadline
	// InFlight means that the key has as many requests in flight as its rule allows. RetryAfter
	// is 0, because the end of a request in flight is not known.
	InFlight
	// Metered means that the request passes, and that some or all of its units are beyond the
	// included units of the customer's plan, up to its hard limit.
	Metered
	// SourceUnavailable means that the source of the rules has not given them yet, and there is no
	// usable cache. The setting without_state decided.
	SourceUnavailable
	// PlanMissing means that the plan of the customer is not known, because it is in a source that
	// has not given it.
	PlanMissing
	// KeyMissing means that the request lacks a part of the rule's key, and the rule refuses such requests. RetryAfter is 0,
	// because only another request can pass.
	KeyMissing
	reasonCount
)

// ReasonCount is the number of reasons and the length of an array that is indexed by
// Reason.
const ReasonCount = int(reasonCount)

// reasonNames has the names that users see, in the order of the constants.
var reasonNames = [reasonCount]string{
	"no_rule", "within_limit", "scheduled", "over_limit", "queue_full", "wait_too_long",
	"never", "store_full", "store_unavailable", "soft_limit", "degraded", "banned", "too_many_waiters",
	"over_share", "anonymous_client", "throttle_full", "throttle_evicted", "throttle_deadline",
	"in_flight", "metered", "source_unavailable", "plan_missing", "key_missing",
}

// String returns the name that metrics, logs and problem bodies show.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Overloaded reports whether the server, not the client, causes a refusal for this
// reason. HTTP then answers 503 and gRPC answers UNAVAILABLE, whatever the rule says.
func (r Reason) Overloaded() bool {
	switch r {
	case StoreFull, StoreUnavailable, TooManyWaiters, ThrottleFull, ThrottleEvicted, ThrottleDeadline, SourceUnavailable, PlanMissing:
		return true
	default:
		return false
	}
}

// Reasons lists every reason, in the order of the constants.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// Decision is the answer to one Op. A request over its limit gets a Decision, never an
// error.
//
// For example, 6 units of a limit of 10 a minute are used. The next allowed request of
// cost 1 gets Limit 10 and Remaining 3.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	// Carried reports that a count that counts in a calendar window began before the window, under
	// other settings of the calendar. All its units count, also those from before the window.
	Carried bool
	// Limit is the most that the policy admits at once: Burst for buckets, Count for windows.
	Limit int64
	// Remaining is the number of units that the key may still take at the time At. For Deny,
	// Remaining is the number before the attempt, also if the attempt was counted.
	Remaining int64
	// RetryAfter is, for Deny, the time until the same request can pass. For Wait, the
	// field is the time until the departure. For Allow and Never, the field is 0.
	RetryAfter time.Duration
	// ResetAfter is the time until the key has its full limit again.
	ResetAfter time.Duration
	// At is the time of the decision, by the store's clock.
	At Instant
	// Receipt records the units that were taken, and is empty when no units were taken. After a
	// Refund or a Charge, it is empty too. Its Cost then says how many units a fixed window gave back, or how many were charged.
	Receipt Receipt
}

// Undecided returns the Decision after an error: Deny, for StoreUnavailable.
// A caller that reads only the verdict then fails closed.
func Undecided() Decision { return Decision{Verdict: Deny, Reason: StoreUnavailable} }

// Receipt records the units that a Decision took. Store.Return accepts it to give the
// units back. Only the store that issued a receipt can read it.
type Receipt struct {
	// Nonce is unique among the receipts of the store. 0 means that no units were taken.
	Nonce uint64
	// Place locates the key in the store. Place is a hash or a digest, not a string, so that
	// a Decision holds no pointer.
	Place [2]uint64
	// Cost is the number of units taken.
	Cost int64
	// From is the time at which the units were taken. For a bucket, From is the time at
	// which the units begin. FromPart is a fraction of the store's unit of time, in the
	// scale that the policy defines.
	From     Instant
	FromPart uint64
	// Policy is the policy under which the units were taken.
	Policy PolicyID
	// Returned is the key's number of returned units when this receipt was issued.
	Returned uint32
	// Kept is the number of units that a Return leaves counted, as if the request had taken
	// only these. A caller sets Kept before the Return. 0 returns all units.
	Kept int64
}

// Empty reports whether the receipt has no units to return.
func (r *Receipt) Empty() bool { return r.Nonce == 0 }

// Units gives the number of units that a Return gives back: Cost without Kept. It is 0 if
// Kept is out of range.
func (r *Receipt) Units() int64 {
	if r.Kept < 0 || r.Kept > r.Cost {
		return 0
	}
	return r.Cost - r.Kept
}
