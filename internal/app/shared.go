package app

import (
	"time"

	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/store/breaker"
	"github.com/headgate/headgate/store/memory"
)

// memoryStats is the state of what this process counts itself: all, or, beside a
// shared store, what falls back to it.
func (i *Instance) memoryStats() memory.Stats {
	if own := i.store.Memory(); own != nil {
		return own.Stats()
	}
	return memory.Stats{}
}

// storeNow is the time by the store's clock, or by this machine's where that is not known.
func (i *Instance) storeNow() time.Time {
	if !i.store.Shared() {
		return i.store.Memory().Now().Time()
	}
	return time.Now()
}

// NodeStatus is what this process has had to do with one server of a shared store.
type NodeStatus struct {
	Address string `json:"address"`
	// State is closed while the server is asked, open while it is left alone after
	// failures, and half_open while it is probed.
	State     string `json:"state"`
	Calls     uint64 `json:"calls"`
	Decisions uint64 `json:"decisions"`
	Failures  uint64 `json:"failures"`
	GivenUp   uint64 `json:"given_up"`
}

// AheadStatus counts units that were taken ahead, and refusals from memory.
type AheadStatus struct {
	Granted         uint64 `json:"granted"`
	Spent           uint64 `json:"spent"`
	Expired         uint64 `json:"expired"`
	DeniedFromCache uint64 `json:"denied_from_cache"`
}

// addShared tells of a shared store.
func (s *StoreStatus) addShared(shared report.Shared) {
	for i := range shared.Nodes {
		n := &shared.Nodes[i]
		s.Nodes = append(s.Nodes, NodeStatus{
			Address: n.Name, State: n.State.String(), Calls: n.Calls, Decisions: n.Decisions, Failures: n.Failures, GivenUp: n.Opened,
		})
		s.Away = s.Away || n.State != breaker.Closed
	}
	if a := shared.Ahead; a != nil {
		s.Ahead = &AheadStatus{Granted: a.Granted, Spent: a.Spent, Expired: a.Expired, DeniedFromCache: a.Denied}
	}
}
