package report

import (
	"strings"
	"time"
)

// Shared is the state of a store that several processes share.
type Shared struct {
	// Nodes are the servers of the store.
	Nodes []Node
	// Ahead counts prefetched units and refusals from memory. nil means that the store has
	// neither.
	Ahead *Ahead
}

// Node has the counts of this process for one server of a store. Values that the store
// does not know are 0.
type Node struct {
	// Name is the address of the server, from the configuration or from the cluster.
	Name  string
	State BreakerState
	// Calls counts calls, and Decisions the decisions that they returned. Failures counts
	// calls without an answer. Refused counts decisions without a call, because the node was
	// known to be unreachable. Opened counts how often its circuit breaker opened.
	Calls, Decisions, Failures, Refused, Opened uint64
	// LastFailure is the last call without an answer. It stays when later calls succeed.
	LastFailure Failure
	// Waiting is the number of decisions that wait for the next call.
	Waiting int64
	// Conflicts counts writes that failed because another process wrote first. Exhausted
	// counts decisions that failed after too many conflicts. Evictions comes from the
	// server.
	Conflicts, Exhausted, Evictions uint64
	// ClockKnown means that the server's clock was estimated. The clock is ahead of this
	// machine's clock by ClockOffset, with an error of at most ClockBound.
	ClockKnown              bool
	ClockOffset, ClockBound time.Duration
}

// Failure is a failed call. The zero Failure stands for none.
type Failure struct {
	At time.Time
	// Text is the error: at most 300 bytes, without characters that a terminal may interpret.
	Text string
}

// mostFailure bounds the text of a Failure, in bytes before escaping and after it.
const (
	mostFailure        = 200
	mostFailureEscaped = 300
)

// NewFailure describes an error, whose text may come from a server. It returns the zero Failure without an error.
func NewFailure(at time.Time, err error) Failure {
	if err == nil {
		return Failure{}
	}
	text := printable(err.Error(), mostFailure)
	if len(text) > mostFailureEscaped {
		text = strings.ToValidUTF8(text[:mostFailureEscaped-len("...")], "") + "..."
	}
	return Failure{At: at, Text: text}
}

// Ahead counts prefetched units: Granted by the store, Spent by requests, Expired
// without use, and Returned to the store. Denied counts refusals from memory.
type Ahead struct {
	Granted, Spent, Expired, Returned, Denied uint64
}
