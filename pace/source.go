package pace

import (
	"context"
	"time"

	"github.com/headgate/headgate"
)

// Source supplies a provider's limit and this instance's part of the limit, and reports
// changes of both.
//
// A source gives assignments, which are parts of windows, or rates. It does not give both.
//
// Follow reports to the receiver until ctx is done. It reports the first plan or rate as soon as
// there is one. It returns an error earlier only for a permanent fault, such as an invalid
// configuration. It reports transient faults with [Receiver.Fault] and retries. When ctx
// ends it returns nil, and it reports nothing after that. A source that returns before it
// has reported a plan or a rate has failed. A [Pacer] calls Follow once, in its own goroutine.
// Several pacers may share a source that allows it.
type Source interface {
	Follow(ctx context.Context, to Receiver) error
}

// Receiver is the target of a [Source]: a [Pacer], or a test. Its methods are safe for
// concurrent use, return soon and do not call back.
type Receiver interface {
	// Assign adopts a plan. A plan equal to the last one changes only the revision.
	Assign(Assignment)
	// Rate adopts a rate at once, in place of plans. See [Rate] for how permits open.
	Rate(Rate)
	// ValidUntil sets the expiry of all assignments and rates, present and later. A time with a
	// monotonic reading is compared by that reading. Without a call, or with a zero time,
	// they do not expire. Assign and Rate do not extend the expiry.
	ValidUntil(time.Time)
	// Brake slows this instance down in addition to its plan. The last call counts.
	Brake(Brake)
	// ClockOffset reports the offset of this machine's wall clock from the clocks of the other
	// machines. The offset is positive if this clock is ahead.
	ClockOffset(time.Duration)
	// Fault counts and logs an error that will be retried. The error must be short and
	// contain no secrets. Invalid plans are faults: the last valid plan is kept.
	Fault(error)
	// Demand returns the units that were requested in the last complete window, including
	// the units that still wait.
	Demand() int64
	// Requested returns the units that were requested since the pacer was made, and how many of
	// them still wait. A request counts once, whatever became of it.
	Requested() (total, waiting int64)
}

// Rate is what an instance may use from a source that follows demand, such as client/lease.
//
// Permits open one after the other at the rate, whatever [Config.Smoothing] is. Of unused permits,
// at most max(1 unit, 0.1 s of the rate) stay open. A larger rate begins without saved permits, and
// a smaller one clips them. So in any time T, an instance with a constant rate takes at most
// rate × (T + 0.1 s) units, or one unit more than rate × T if the rate is below 10 a second.
// [Pacer.AcquireN] of n units adds up to n-1.
type Rate struct {
	// Amount is in thousandths of a unit per second: 0 to schedule.MaxLimit.
	Amount int64
	// Limited says that the instance gets no more now, whatever its demand is. Then waits that
	// cannot succeed at this rate fail at once. Otherwise callers wait, because the rate may grow.
	Limited bool
}

// Assignment is an instance's part of a limit, and the time from which it holds.
type Assignment struct {
	Plan Plan
	// From is the wall time from which the plan is valid: the edge of one of its windows. Zero means
	// the next edge. For the first plan, zero means at once: the rest of the current window gets its
	// share of the units. With long windows, use a [Brake] for changes that cannot wait for the edge.
	// A brake takes effect at once.
	From headgate.Instant
	// Until Settled, the instance takes no more than the previous plan gave it, because other
	// instances may still use the old plan. Before the first plan, the instance takes nothing. A time
	// with a monotonic reading is compared by that reading. The zero time is in the past.
	Settled  time.Time
	Revision int64 // of the source, for logs and metrics; higher is newer
}

// Brake slows an instance down for a time, in addition to its plan, because the provider
// asked for it.
type Brake struct {
	Until   time.Time // by the wall clock
	Percent int       // of the limit that may go until then, from 0
	Reason  string    // in few words, for logs: "429 Retry-After"
}

// Braker is a [Source] through which one instance can slow down all instances.
type Braker interface {
	// Brake sends the brake to all instances, unless a stronger brake holds. It returns
	// soon. A brake that cannot be sent in time is a [Receiver.Fault].
	Brake(Brake)
}
