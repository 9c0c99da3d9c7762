package open

import (
	"slices"

	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/store/redis"
)

// State gives the calls, failures and refusals of a shared store's servers, as this process
// has seen them, for metrics and status pages. State is empty for a store in memory.
func (s *Opened) State() report.Shared {
	var state report.Shared
	if s.redis != nil {
		state.Nodes = append(state.Nodes, s.redisNodes()...)
	}
	if s.memcached != nil {
		state.Nodes = append(state.Nodes, s.memcachedNodes()...)
	}
	if s.ahead != nil {
		a := s.ahead.Stats()
		state.Ahead = &report.Ahead{Granted: a.Granted, Spent: a.Spent, Expired: a.Expired, Returned: a.Returned, Denied: a.Denied}
	}
	return state
}

// redisNodes gives the nodes of both stores in Redis, by their addresses. A node that both stores use,
// with another database, appears once.
func (s *Opened) redisNodes() []report.Node {
	nodes := nodesOf(s.redis)
	if s.perSecond == nil {
		return nodes
	}
	for _, n := range nodesOf(s.perSecond) {
		i := slices.IndexFunc(nodes, func(other report.Node) bool { return other.Name == n.Name })
		if i < 0 {
			nodes = append(nodes, n)
			continue
		}
		both := &nodes[i]
		both.Calls, both.Decisions, both.Failures = both.Calls+n.Calls, both.Decisions+n.Decisions, both.Failures+n.Failures
		both.Refused, both.Opened, both.Waiting = both.Refused+n.Refused, both.Opened+n.Opened, both.Waiting+n.Waiting
		if n.LastFailure.At.After(both.LastFailure.At) {
			both.LastFailure = n.LastFailure
		}
		if both.State == breaker.Closed {
			both.State = n.State
		}
	}
	return nodes
}

func nodesOf(store *redis.Store) []report.Node {
	var nodes []report.Node
	for _, n := range store.Stats().Nodes {
		nodes = append(nodes, report.Node{
			Name: n.Address, State: n.State, Calls: n.Calls, Decisions: n.Decisions, Failures: n.Failures,
			LastFailure: report.NewFailure(n.LastFailure.At, n.LastFailure.Err),
			Refused:     n.Refused, Opened: n.Opened, Waiting: int64(n.Waiting),
			ClockKnown: n.ClockKnown, ClockOffset: n.ClockOffset, ClockBound: n.ClockBound,
		})
	}
	return nodes
}

func (s *Opened) memcachedNodes() []report.Node {
	var nodes []report.Node
	for _, n := range s.memcached.Stats() {
		nodes = append(nodes, report.Node{
			Name: n.Server, State: n.Breaker, Decisions: n.Decisions, Failures: n.Errors, Refused: n.Refused, Opened: n.Opened,
			LastFailure: report.NewFailure(n.LastFailure.At, n.LastFailure.Err),
			Conflicts:   n.Conflicts, Exhausted: n.Exhausted, Evictions: n.Evictions,
			ClockKnown: n.ClockKnown, ClockOffset: n.ClockOffset, ClockBound: n.ClockBound,
		})
	}
	return nodes
}
