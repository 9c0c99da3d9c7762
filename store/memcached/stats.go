package memcached

import (
	"strconv"
	"time"

	"github.com/headgate/headgate/store/breaker"
)

// Stats is what a Store knows of one server and has done with it, for metrics and
// status pages. Numbers count from the making of the Store.
type Stats struct {
	// Server is its address.
	Server string
	// Breaker is whether it is asked, Opened how often it was given up, and Refused
	// how many calls were not made meanwhile.
	Breaker breaker.State
	Opened  uint64
	Refused uint64
	// Decisions counts decided Ops.
	Decisions uint64
	// Errors counts calls that failed or were refused.
	Errors uint64
	// Conflicts counts writes before which another process had written, and Exhausted
	// those that were not tried again: their decisions are ErrContended.
	Conflicts, Exhausted uint64
	// ClockKnown says that the server's clock was estimated: it is ClockOffset ahead of
	// this machine's wall clock, give or take ClockBound.
	ClockKnown  bool
	ClockOffset time.Duration
	ClockBound  time.Duration
	// Items, Bytes, MaxBytes, Evictions and Uptime are as the server told last: within
	// seconds. An eviction of a key that was in use lets it begin anew; so does a
	// restart, which shows as a shorter Uptime.
	Items, Bytes, MaxBytes uint64
	Evictions              uint64
	Uptime                 time.Duration
}

// Stats gives what is known of each server, in the order of Config.Servers. It does no I/O.
func (s *Store) Stats() []Stats {
	if s == nil {
		return nil
	}
	all := make([]Stats, len(s.nodes))
	for i, n := range s.nodes {
		all[i] = n.stats()
	}
	return all
}

func (n *node) stats() Stats {
	b := n.breaker.Stats()
	st := Stats{
		Server: n.addr, Breaker: n.breaker.State(), Opened: b.Opened, Refused: b.Refused,
		Decisions: n.decisions.Load(), Errors: n.faults.Load(),
		Conflicts: n.conflicts.Load(), Exhausted: n.exhausted.Load(),
	}
	st.ClockOffset, st.ClockBound, st.ClockKnown = n.clock.ahead()
	if t := n.told.Load(); t != nil {
		st.Items, st.Bytes, st.MaxBytes, st.Evictions, st.Uptime = t.items, t.bytes, t.maxBytes, t.evictions, t.uptime
	}
	return st
}

// told is what a server's statistics say.
type told struct {
	items, bytes, maxBytes, evictions uint64
	uptime                            time.Duration
}

// toldBy reads the statistics; what is missing or no number is 0.
func toldBy(stats map[string]string) *told {
	number := func(name string) uint64 {
		n, err := strconv.ParseUint(stats[name], 10, 63)
		if err != nil {
			return 0
		}
		return n
	}
	return &told{
		items: number("curr_items"), bytes: number("bytes"), maxBytes: number("limit_maxbytes"),
		evictions: number("evictions"), uptime: time.Duration(min(number("uptime"), 1<<32)) * time.Second,
	}
}
