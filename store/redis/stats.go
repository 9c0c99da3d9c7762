package redis

import "github.com/headgate/headgate/store/breaker"

// Node has the counters of one node.
type Node struct {
	// Address is HOST:PORT, or the name of the master if there are sentinels.
	Address string
	// State is breaker.Closed while the node gets calls.
	State breaker.State
	// Calls counts sent scripts. Decisions counts the Ops that the scripts decided. Decisions/Calls is
	// the mean number of decisions in a call.
	Calls, Decisions uint64
	// Decided counts the queries of callers that got decisions. Undecided counts the queries of callers that got
	// none because of the node: an error, no answer in time, or an open breaker. A caller has one query for each
	// node, and for each slot of a cluster. Canceled callers do not count.
	Decided, Undecided uint64
	// Failures counts calls without an answer. The server may have counted their Ops.
	Failures uint64
	// Refused counts queries that were not sent because the breaker was open or no server was ever
	// reached. Unsent counts queries whose callers left before the queries were sent.
	Refused, Unsent uint64
	// Opened counts the openings of the breaker.
	Opened uint64
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
		b := l.breaker.Stats()
		l.mu.Lock()
		waiting, inFlight, state := len(l.queue), l.inFlight, l.breaker.State()
		l.mu.Unlock()
		if !stats.Connected && s.link.failure.Load() != nil {
			state = breaker.Open // The breaker stays closed without calls, but no server was ever reached.
		}
		stats.Nodes = append(stats.Nodes, Node{
			Address: l.node, State: state, Opened: b.Opened, Refused: b.Refused + l.counts.unreached.Load(),
			Calls: l.counts.calls.Load(), Decisions: l.counts.decisions.Load(),
			Decided: l.counts.decided.Load(), Undecided: l.counts.undecided.Load(), Failures: l.counts.failures.Load(), Unsent: l.counts.unsent.Load(), Waiting: waiting, InFlight: inFlight,
		})
	}
	return stats
}
