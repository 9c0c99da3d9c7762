package redis

import (
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
)

// Node has the counters of one node.
type Node struct {
	// Address is HOST:PORT, or the name of the master if there are sentinels.
	Address string
	// State is breaker.Closed while the node gets calls.
	State BreakerState
	// Calls counts sent scripts. Decisions counts the Ops that the scripts decided. Decisions/Calls is
	// the mean number of decisions in a call.
	Calls, Decisions uint64
	// Decided counts the queries of callers that got decisions. Undecided counts the queries of callers that got
	// none because of the node: an error, no answer in time, or an open breaker. A caller has one query for each
	// node, and for each slot of a cluster. Canceled callers do not count.
	Decided, Undecided uint64
	// Failures counts calls without an answer. The server may have counted their Ops. LastFailure is the last one, or the last
	// attempt to connect as long as no server was reached.
	Failures    uint64
	LastFailure Failure
	// Refused counts queries that were not sent because the breaker was open or no server was ever
	// reached. Unsent counts queries whose callers left before the queries were sent.
	Refused, Unsent uint64
	// Opened counts the openings of the breaker.
	Opened uint64
	// ClockKnown reports that a decision showed the server's clock: ClockOffset ahead of this machine's wall clock, with
	// an error of at most ClockBound. They are those of the last decision.
	ClockKnown              bool
	ClockOffset, ClockBound time.Duration
	// Waiting is the number of waiting queries. InFlight is the number of batches in flight.
	Waiting, InFlight int
}

// Stats are the counters of a Store, for metrics and status pages.
type Stats struct {
	// Connected reports whether a server was reached since the start.
	Connected bool
	// Nodes are the nodes in use, sorted by address.
	Nodes []Node
}

// Stats reads the counters.
func (s *Store) Stats() Stats {
	if !s.made() {
		return Stats{}
	}
	stats := Stats{Connected: s.link.client.Load() != nil}
	for _, l := range s.queues.list() {
		b, last := l.breaker.Stats(), l.last.Load()
		l.mu.Lock()
		waiting, inFlight, state := len(l.queue), l.inFlight, l.breaker.State()
		l.mu.Unlock()
		if !stats.Connected && s.link.failure.Load() != nil {
			state = breaker.Open // The breaker stays closed without calls, but no server was ever reached.
			last = last.Later(s.link.last.Load())
		}
		offset, bound, known := l.clock.ahead()
		stats.Nodes = append(stats.Nodes, Node{
			ClockKnown: known, ClockOffset: offset, ClockBound: bound,
			Address: l.node, State: state, Opened: b.Opened, Refused: b.Refused + l.counts.unreached.Load(),
			Calls: l.counts.calls.Load(), Decisions: l.counts.decisions.Load(),
			Decided: l.counts.decided.Load(), Undecided: l.counts.undecided.Load(),
			Failures: l.counts.failures.Load(), LastFailure: last, Unsent: l.counts.unsent.Load(), Waiting: waiting, InFlight: inFlight,
		})
	}
	return stats
}

// serverClock is the offset of a server's clock from this machine's wall clock, as the last decision has shown it.
type serverClock struct {
	// offset and bound are in nanoseconds. bound is 0 before the first decision. The two may be of different decisions.
	offset, bound atomic.Int64
}

// read notes the server's time of a call that took trip and has just ended.
func (c *serverClock) read(at headgate.Instant, trip time.Duration) {
	middle := time.Now().UnixNano() - int64(trip/2)
	c.offset.Store(int64(at) - middle)
	c.bound.Store(int64(trip/2 + time.Microsecond))
}

func (c *serverClock) ahead() (offset, bound time.Duration, known bool) {
	bound = time.Duration(c.bound.Load())
	return time.Duration(c.offset.Load()), bound, bound > 0
}
