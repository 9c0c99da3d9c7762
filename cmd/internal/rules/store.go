package rules

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/store/memory"
)

// memoryStats returns the state of the memory store. Beside a shared store, the memory store
// counts only during a fallback.
func (r *Rules) memoryStats() memory.Stats {
	if own := r.store.Memory(); own != nil {
		return own.Stats()
	}
	return memory.Stats{}
}

// storeNow returns the memory store's time. Beside a shared store it returns this machine's
// time, because the shared clock is not known here.
func (r *Rules) storeNow() time.Time {
	if !r.store.Shared() {
		return r.store.Memory().Now().Time()
	}
	return time.Now()
}

// Reached reports whether the store was reached since the start: a server of a shared store has
// answered, and also one of the store for limits of one second. A store in memory is always reached.
func (r *Rules) Reached() bool {
	if own := r.store.Redis(); own != nil {
		second := r.store.PerSecond()
		return own.Stats().Connected && (second == nil || second.Stats().Connected)
	}
	if own := r.store.Memcached(); own != nil {
		for _, n := range own.Stats() {
			if n.ClockKnown || n.Decisions > 0 {
				return true
			}
		}
		return false
	}
	return true
}

// addShared adds the state of a shared store.
func addShared(s *admin.StoreStatus, shared report.Shared) {
	for i := range shared.Nodes {
		n := &shared.Nodes[i]
		node := admin.NodeStatus{
			Address: n.Name, State: n.State.String(), Calls: n.Calls, Decisions: n.Decisions, Failures: n.Failures, GivenUp: n.Opened,
		}
		if at := n.LastFailure.At; !at.IsZero() {
			node.LastError, node.LastErrorAt = n.LastFailure.Text, &at
		}
		if n.ClockKnown {
			node.ClockAheadSeconds, node.ClockErrorSeconds = n.ClockOffset.Seconds(), n.ClockBound.Seconds()
		}
		s.Nodes = append(s.Nodes, node)
		s.Away = s.Away || n.State != breaker.Closed
	}
	if a := shared.Ahead; a != nil {
		s.Ahead = &admin.AheadStatus{Granted: a.Granted, Spent: a.Spent, Expired: a.Expired, DeniedFromCache: a.Denied}
	}
}

// storeOptions makes every connection of a probe fail.
func storeOptions(host *component.Host) open.Options {
	to := open.Options{Log: host.Log}
	if host.Probe {
		to.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errProbe }
	}
	return to
}

var errProbe = errors.New("app: a probe opens no connection")
