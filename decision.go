package headgate

import (
	"fmt"
	"time"
)

// Instant is a time by the clock of the store that decided: nanoseconds since
// the Unix epoch. Shared stores give whole microseconds.
type Instant int64

// Time gives the instant as a wall time, in UTC.
func (t Instant) Time() time.Time { return time.Unix(0, int64(t)).UTC() }

// Add gives the instant d later.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Sub gives the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Verdict is what a Decision says of a request.
type Verdict uint8

const (
	// Allow lets the request go now.
	Allow Verdict = iota
	// Wait lets it go after RetryAfter, at a departure that is booked for it.
	Wait
	// Deny refuses it.
	Deny
)

// String gives "allow", "wait" or "deny".
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

// Reason says why a Decision is as it is. Metrics, logs and problem bodies show it.
type Reason uint8

const (
	// NoRule: no rule speaks for the request.
	NoRule Reason = iota
	// WithinLimit: the units counted, this request included, stay within the limit.
	WithinLimit
	// Scheduled: a departure is booked; the request waits for it.
	Scheduled
	// OverLimit: the limit is used up for now; RetryAfter says until when.
	OverLimit
	// QueueFull: every place of the leaky bucket's queue is taken.
	QueueFull
	// WaitTooLong: the next departure lies further ahead than MaxWait.
	WaitTooLong
	// Never: the cost is above what the limit ever admits at once. There is no RetryAfter.
	Never
	// StoreFull: no place is left for a new key; the store's on_full decided.
	StoreFull
	// StoreUnavailable: the store could not answer; the rule's fallback decided.
	StoreUnavailable
	// SoftLimit: the request passes, and the units counted are above the rule's soft limit.
	SoftLimit
	// Degraded: the limit is used up, and the rule lets the request pass for less service.
	Degraded
	// Banned: the key made too many attempts; RetryAfter says when its ban ends.
	Banned
	// TooManyWaiters: no further request may wait for the rule; RetryAfter is how long
	// this one would have waited. It is no fault of the sender's.
	TooManyWaiters
	// OverShare: the client has used its share of the service's capacity, and nothing
	// is left to lend; RetryAfter says when the next cycle begins.
	OverShare
	// AnonymousClient: the request does not say which client it is of, and shares are
	// those of clients. There is no RetryAfter.
	AnonymousClient
	reasonCount
)

// ReasonCount is the number of reasons: an array of this length is indexed by Reason.
const ReasonCount = int(reasonCount)

// reasonNames holds the words that users see, in the order of the constants.
var reasonNames = [reasonCount]string{
	"no_rule", "within_limit", "scheduled", "over_limit", "queue_full", "wait_too_long",
	"never", "store_full", "store_unavailable", "soft_limit", "degraded", "banned", "too_many_waiters",
	"over_share", "anonymous_client",
}

// String gives the word that metrics, logs and problem bodies show.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Overloaded reports whether a refusal for this reason is for want of room, or of an
// answer, on our side: HTTP answers 503, and gRPC UNAVAILABLE, whatever the rule says.
func (r Reason) Overloaded() bool {
	return r == StoreFull || r == StoreUnavailable || r == TooManyWaiters
}

// Reasons lists every reason, in the order of the constants.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// Decision is the answer to one Op. Over the limit is a Decision, never an error.
//
// For a limit of 10 a minute of which 6 are used, an allowed request leaves
// Limit 10 and Remaining 3.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	// Limit is the most that the policy admits at once: Burst for the buckets, Count for the windows.
	Limit int64
	// Remaining is how many units the key may still take at At.
	Remaining int64
	// RetryAfter is, for Deny, the time until the same request can pass, and, for
	// Wait, the time until its departure. It is 0 for Allow and for Never.
	RetryAfter time.Duration
	// ResetAfter is the time until nothing is counted against the key any more.
	ResetAfter time.Duration
	// At is the time decided at, by the store's clock.
	At Instant
	// Receipt says what was taken. It is empty when nothing was.
	Receipt Receipt
}

// Undecided gives the Decision beside an error: Deny, for StoreUnavailable. A caller
// that looks at the verdict alone then fails closed.
func Undecided() Decision { return Decision{Verdict: Deny, Reason: StoreUnavailable} }

// Receipt is what a Decision took, so that it can be returned with Store.Return.
// It is a plain value that the issuing store alone reads.
type Receipt struct {
	// Nonce tells this receipt from every other of the store. 0 means that nothing was taken.
	Nonce uint64
	// Place is where the store finds the key again: a hash or a digest of the key,
	// which is no string, so that a Decision holds no pointer.
	Place [2]uint64
	// Cost is how many units were taken.
	Cost int64
	// From is when they were taken, or, for a bucket, where its units begin;
	// FromPart counts fractions of the store's unit of time as the policy defines them.
	From     Instant
	FromPart uint64
	// Policy is the policy they were taken under.
	Policy PolicyID
	// Returned is the key's count of returned units when these were taken.
	Returned uint32
}

// Empty reports whether the receipt holds nothing to return.
func (r *Receipt) Empty() bool { return r.Nonce == 0 }
