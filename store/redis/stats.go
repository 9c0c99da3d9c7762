package redis

import "github.com/headgate/headgate/store/breaker"

// Node is what a Store has had to do with one node.
type Node struct {
	// Address is HOST:PORT, or the name of the master that sentinels watch.
	Address string
	// State is Closed while the node is asked.
	State breaker.State
	// Calls counts scripts that were sent, and Decisions the Ops that they decided:
	// their ratio is how many decisions share a call.
	Calls, Decisions uint64
	// Failures counts calls without an answer, whose Ops may have been counted.
	Failures uint64
	// Refused counts asks that were not sent because the node was left alone, or was never reached, and
	// Unsent those whose callers had left before their turn came.
	Refused, Unsent uint64
	// Opened counts how often the node was given up.
	Opened uint64
	// Waiting is how many asks wait for the next call, and InFlight how many batches are
	// on their way.
	Waiting, InFlight int
}

// Stats is the state of a Store, for metrics and status pages.
type Stats struct {
	// Connected tells whether the servers were reached since the start.
	Connected bool
	// Nodes are the nodes that are asked, by address.
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
			state = breaker.Open // No server was ever reached: nothing is sent that could fail.
		}
		stats.Nodes = append(stats.Nodes, Node{
			Address: l.node, State: state, Opened: b.Opened, Refused: b.Refused + l.counts.unreached.Load(),
			Calls: l.counts.calls.Load(), Decisions: l.counts.decisions.Load(),
			Failures: l.counts.failures.Load(), Unsent: l.counts.unsent.Load(), Waiting: waiting, InFlight: inFlight,
		})
	}
	return stats
}
