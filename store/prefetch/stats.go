package prefetch

import "sync/atomic"

// counts is what Stats adds up; what places hold is added to it when they make room.
type counts struct {
	granted, spent, expired, returned atomic.Uint64
	flights, denied, asked            atomic.Uint64
}

// Stats is what a Store has done, for metrics and status pages.
type Stats struct {
	// Granted counts the units that the source has granted ahead of need, those that
	// were asked for at once included; Spent and Expired, what became of them. The rest is still held.
	Granted, Spent, Expired uint64
	// Returned counts units that receipts brought back to a stash; they are not Spent.
	Returned uint64
	// Flights counts calls of Grant, Asked groups that the source has decided.
	Flights, Asked uint64
	// Denied counts groups that were refused without asking the source, or with many by one answer.
	Denied uint64
}

// Stats reads the counters. It locks each set of the table in turn.
func (s *Store) Stats() Stats {
	if !s.made() {
		return Stats{}
	}
	st := Stats{
		Granted: s.counts.granted.Load(), Returned: s.counts.returned.Load(),
		Spent: s.counts.spent.Load(), Expired: s.counts.expired.Load(),
		Flights: s.counts.flights.Load(), Asked: s.counts.asked.Load(), Denied: s.counts.denied.Load(),
	}
	for i := range s.table.sets {
		t := &s.table.sets[i]
		t.lock()
		now := s.now()
		for j := range t.places {
			t.places[j].addTo(&st, int64(now))
		}
		t.unlock()
	}
	return st
}

// addTo adds what a place has counted itself.
func (p *place) addTo(st *Stats, now int64) {
	st.Denied += p.refused
	for i := range p.stashes {
		h := &p.stashes[i]
		st.Spent += uint64(h.units - h.left)
		if now >= int64(h.until) {
			st.Expired += uint64(h.left)
		}
	}
}
