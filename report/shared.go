package report

import (
	"time"

	"github.com/headgate/headgate/store/breaker"
)

// Shared is the state of a store that many processes share.
type Shared struct {
	// Nodes are its servers.
	Nodes []Node
	// Ahead tells of units taken ahead and of refusals from memory; nil is a store
	// that does neither.
	Ahead *Ahead
}

// Node is what this process has had to do with one server of a store. What a store does
// not know of is 0.
type Node struct {
	// Name is its address, as the configuration or the cluster has it.
	Name  string
	State breaker.State
	// Calls counts questions, and Decisions what they decided; Failures counts those
	// without an answer, and Refused what was not asked because the node was left alone.
	Calls, Decisions, Failures, Refused, Opened uint64
	// Waiting is how many decisions wait for the next call.
	Waiting int64
	// Conflicts counts writes that another process was ahead of, and Exhausted decisions
	// that were given up for them. Evictions is what the server says.
	Conflicts, Exhausted, Evictions uint64
	// ClockKnown says that the server's clock was estimated: by ClockOffset ahead of
	// this machine's, give or take ClockBound.
	ClockKnown              bool
	ClockOffset, ClockBound time.Duration
}

// Ahead counts units: Granted by the store ahead of need, Spent of these, Expired
// unspent, and Returned to the store. Denied counts refusals from memory.
type Ahead struct {
	Granted, Spent, Expired, Returned, Denied uint64
}
