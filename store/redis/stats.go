package redis

import "github.com/headgate/headgate/store/breaker"

// Node has the counters of one node.
type Node struct {
	// Address is HOST:PORT, or the name of the master with sentinels.
	Address string
	// State is Closed while the node gets calls.
	State breaker.State
	// Calls counts sent scripts. Decisions counts the Ops that they decided. Their ratio is the
	// number of decisions in a call.
	Calls, Decisions uint64
	// Failures counts calls without an answer. Their Ops may have been counted.
	Failures uint64
	// Refused counts queries that were not sent because the breaker was open or the node was never
	// reached. Unsent counts queries whose callers left before their turn.
	Refused, Unsent uint64
	// Opened counts the openings of the breaker.
	Opened uint64
	// Waiting is the number of waiting queries. InFlight is the number of batches in flight.
	Waiting, InFlight int
}

// Stats are the counters of a Store, for metrics and status pages.
type Stats struct {
	// Connected reports whether the servers were reached since the start.
	Connected bool
	// Nodes are the used nodes, by address.
	Nodes []Node
}

// Stats reads the counters.
func (s *Store) Stats() Stats {
	if !s.made() {
		return Stats{}
	}
	stats := Stats{Connected: s.link.client.Load() != nil}
	for _, l := range s.lanes.list() {
		b := l.breaker.Stats()
		l.mu.Lock()
		waiting, inFlight, state := len(l.queue), l.inFlight, l.breaker.State()
		l.mu.Unlock()
		if !stats.Connected && s.link.failure.Load() != nil {
			state = breaker.Open // No server was ever reached, so no call could fail.
		}
		stats.Nodes = append(stats.Nodes, Node{
			Address: l.node, State: state, Opened: b.Opened, Refused: b.Refused + l.counts.unreached.Load(),
			Calls: l.counts.calls.Load(), Decisions: l.counts.decisions.Load(),
			Failures: l.counts.failures.Load(), Unsent: l.counts.unsent.Load(), Waiting: waiting, InFlight: inFlight,
		})
	}
	return stats
}
