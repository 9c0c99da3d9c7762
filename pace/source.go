package pace

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace/schedule"
)

// Source tells a pacer how large its provider's limit is and which part of it is this
// instance's, as both change.
//
// Follow tells to until ctx is done, and returns then. It tells the first plan as soon
// as there is one. It returns an error earlier only when it can never tell anything
// (a fault of its own configuration); what may pass, it reports by [Receiver.Fault]
// and tries again. At the end of ctx it returns nil, and nothing is told after that. A
// source that returns before it has told a plan has failed. A [Pacer] calls Follow once, in
// a goroutine of its own; several pacers may share a source that allows it.
type Source interface {
	Follow(ctx context.Context, to Receiver) error
}

// Receiver is what a [Source] tells: a [Pacer], or a test. Its methods may be called
// by several goroutines, return soon and do not call back.
type Receiver interface {
	// Assign gives a plan. One that is the same as the last changes nothing but its revision.
	Assign(Assignment)
	// ValidUntil says until when what was assigned may be used, and what will be; a time
	// with a monotonic reading is taken by it. Until it is called, and after a zero time,
	// it may be used for ever. Assign does not prolong it.
	ValidUntil(time.Time)
	// Brake slows this instance down, besides its plan. The last one counts.
	Brake(Brake)
	// ClockOffset says how far this machine's wall clock is ahead of the others'.
	ClockOffset(time.Duration)
	// Fault counts and logs what went wrong and will be tried again: in few words, without
	// secrets. Plans that are not valid are faults: the last good one is kept.
	Fault(error)
	// Demand gives the units that were asked for in the last whole window, those that
	// still wait among them.
	Demand() int64
}

// Assignment is an instance's part of a limit, and from when it holds.
type Assignment struct {
	Plan schedule.Plan
	// From is the wall time of the edge of a window of the plan, from which it holds; zero
	// is the next edge, and for the first plan of all at once: then what is left of the
	// window has its part of the units. Where windows are long and somebody cannot wait for
	// the edge, a [Brake] holds at once.
	From headgate.Instant
	// Settled is the time until which the instance takes no more than the plan before
	// gave it, since another may not know of this plan yet: nothing, for the first plan. A
	// time with a monotonic reading is taken by it. The zero time is long ago.
	Settled  time.Time
	Revision int64 // of the source, for logs and metrics; higher is newer
}

// Brake slows an instance down for a time, besides its plan: because the provider
// asked for it.
type Brake struct {
	Until   time.Time // by the wall clock
	Percent int       // of the limit that may go until then, from 0
	Reason  string    // in few words, for logs: "429 Retry-After"
}

// Braker is a [Source] by which one instance slows down all of them.
type Braker interface {
	// Brake tells all instances of the brake, unless a stronger one holds. It returns
	// soon: what cannot be told in time is a [Receiver.Fault].
	Brake(Brake)
}
