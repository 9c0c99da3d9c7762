package app

import (
	"time"

	"github.com/headgate/headgate/internal/admin"
	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/store/breaker"
	"github.com/headgate/headgate/store/memory"
)

// memoryStats is the state of what this process counts itself: all, or, beside a
// shared store, what falls back to it.
func (r *rules) memoryStats() memory.Stats {
	if own := r.store.Memory(); own != nil {
		return own.Stats()
	}
	return memory.Stats{}
}

// storeNow is the time by the store's clock, or by this machine's where that is not known.
func (r *rules) storeNow() time.Time {
	if !r.store.Shared() {
		return r.store.Memory().Now().Time()
	}
	return time.Now()
}

// addShared tells of a shared store.
func addShared(s *admin.StoreStatus, shared report.Shared) {
	for i := range shared.Nodes {
		n := &shared.Nodes[i]
		s.Nodes = append(s.Nodes, admin.NodeStatus{
			Address: n.Name, State: n.State.String(), Calls: n.Calls, Decisions: n.Decisions, Failures: n.Failures, GivenUp: n.Opened,
		})
		s.Away = s.Away || n.State != breaker.Closed
	}
	if a := shared.Ahead; a != nil {
		s.Ahead = &admin.AheadStatus{Granted: a.Granted, Spent: a.Spent, Expired: a.Expired, DeniedFromCache: a.Denied}
	}
}
