package memcached

import (
	"strconv"
	"time"
)

// Stats are the counters of one server, for metrics and status pages. They count from New.
type Stats struct {
	// Server is its address.
	Server string
	// Breaker is the state of the breaker, Opened the number of its openings, and Refused the
	// number of refused calls.
	Breaker BreakerState
	Opened  uint64
	Refused uint64
	// Decisions counts decided Ops.
	Decisions uint64
	// Errors counts calls that failed or were refused. LastFailure is the last one that failed because of the server.
	Errors      uint64
	LastFailure Failure
	// Conflicts counts writes that failed because another process had written first. Exhausted
	// counts writes without a further attempt: their decisions are ErrContended.
	Conflicts, Exhausted uint64
	// ClockKnown reports that there is an estimate of the server's clock: ClockOffset ahead of this
	// machine's wall clock, with an error of at most ClockBound.
	ClockKnown  bool
	ClockOffset time.Duration
	ClockBound  time.Duration
	// Items, Bytes, MaxBytes, Evictions and Uptime are from the server's last answer, a few seconds
	// old. A key that is evicted while in use starts with empty counts. Every key also does so after a
	// restart: Uptime is then shorter.
	Items, Bytes, MaxBytes uint64
	Evictions              uint64
	Uptime                 time.Duration
}

// Stats gives the counters of each server, in the order of Config.Servers or of Config.Lookup. It is
// empty before the servers are found. It does no I/O.
func (s *Store) Stats() []Stats {
	if s == nil {
		return nil
	}
	var all []Stats
	for _, n := range s.servers() {
		all = append(all, n.stats())
	}
	return all
}

func (n *node) stats() Stats {
	b := n.breaker.Stats()
	st := Stats{
		Server: n.addr, Breaker: n.breaker.State(), Opened: b.Opened, Refused: b.Refused,
		Decisions: n.decisions.Load(), Errors: n.faults.Load(), LastFailure: n.last.Load(),
		Conflicts: n.conflicts.Load(), Exhausted: n.exhausted.Load(),
	}
	st.ClockOffset, st.ClockBound, st.ClockKnown = n.clock.ahead()
	if t := n.reported.Load(); t != nil {
		st.Items, st.Bytes, st.MaxBytes, st.Evictions, st.Uptime = t.items, t.bytes, t.maxBytes, t.evictions, t.uptime
	}
	return st
}

// report is an answer with a server's statistics.
type report struct {
	items, bytes, maxBytes, evictions uint64
	uptime                            time.Duration
}

// toldBy reads the statistics. A missing or malformed number is 0.
func toldBy(stats map[string]string) *report {
	number := func(name string) uint64 {
		n, err := strconv.ParseUint(stats[name], 10, 63)
		if err != nil {
			return 0
		}
		return n
	}
	return &report{
		items: number("curr_items"), bytes: number("bytes"), maxBytes: number("limit_maxbytes"),
		evictions: number("evictions"), uptime: time.Duration(min(number("uptime"), 1<<32)) * time.Second,
	}
}
